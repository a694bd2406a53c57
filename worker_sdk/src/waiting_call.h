#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "contract.h"
#include "muster/async.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// What was answered, or throws: what the function threw, or that there is none.
template <typename Value>
Result<Value> answer_of(const std::function<Result<Value>()>& give) {
  if (!give) throw ContractViolation("an asynchronous function gave no answer");
  return give();
}

inline constexpr char kOneWait[] = "an asynchronous call waits for one thing at a time";

/// When a wait that begins `now` is over.
TimePoint wait_end(TimePoint now, std::chrono::nanoseconds wait);

/// The context of an asynchronous call that a thread waits for, as tests of plugins do: calls what it waits for itself.
class WaitingContext final : public AsyncContext {
 public:
  /// `context` outlives run(), and whoever logs.
  explicit WaitingContext(JobContext& context)
      : context_(context), stop_(context.stop_token()), deadline_(context.deadline()) {}

  [[nodiscard]] std::stop_token stop_token() const override { return stop_; }
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const override { return deadline_; }
  [[nodiscard]] spdlog::logger& log() override { return context_.log(); }
  void count_calls(std::uint32_t calls) override;
  void after(std::chrono::nanoseconds wait, std::function<void()> then) override;
  void block(std::function<void()> then) override { after(std::chrono::nanoseconds::zero(), std::move(then)); }

  /// Ends run(). Thread: any.
  void end();
  void run();

 private:
  JobContext& context_;
  const std::stop_token stop_;
  const TimePoint deadline_;
  std::mutex mutex_;  // of the members below
  std::condition_variable_any changed_;
  bool ended_ = false;
  std::function<void()> then_;
  TimePoint due_{};
};

/// Calls an asynchronous function and waits for its answer; throws what it throws.
template <typename Request, typename Value>
Result<Value> wait_for_answer(const std::function<void(AsyncCall<Request, Value>)>& function, const Request& request,
                              JobContext& context) {
  const auto waiting = std::make_shared<WaitingContext>(context);
  std::optional<Result<Value>> answer;
  std::exception_ptr thrown;
  {
    const AsyncCall<Request, Value> call(request, waiting, [&, waiting](const auto& give) {
      try {
        answer = answer_of<Value>(give);
      } catch (...) {
        thrown = std::current_exception();
      }
      waiting->end();
    });
    call.go_on([&] { function(call); });
  }
  waiting->run();
  if (thrown) std::rethrow_exception(thrown);
  return std::move(*answer);
}

}  // namespace muster
