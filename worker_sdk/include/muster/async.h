#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "muster/job.h"

namespace muster {

/// The context of an asynchronous function; plugins use it through AsyncCall. Thread: any.
class AsyncContext : public JobContext {
 public:
  virtual void after(std::chrono::nanoseconds wait, std::function<void()> then) = 0;
  virtual void block(std::function<void()> then) = 0;
};

/// One call of an asynchronous function: what is asked, and where the answer goes. Copies are the same call; one that
/// is let go of without an answer has failed (INTERNAL_FAILURE). Thread: any, but one at a time.
template <typename Request, typename Value>
class AsyncCall {
 public:
  /// Takes the answer, once: `give` returns it or throws what the function threw; empty: there is none.
  using Take = std::function<void(const std::function<Result<Value>()>& give)>;

  /// Calls are made by the SDK.
  AsyncCall(Request request, std::shared_ptr<AsyncContext> context, Take take)
      : state_(std::make_shared<State>(std::move(request), std::move(context), std::move(take))) {}

  /// Both are there until the answer is given.
  [[nodiscard]] const Request& request() const { return state_->request; }
  [[nodiscard]] JobContext& context() const { return *state_->context; }

  /// Ends the call; only its first answer counts. The answer is checked, and secrets redacted from it, here: a large
  /// one is given in block().
  void answer(Result<Value> value) const {
    state_->give([&] { return std::move(value); });
  }
  /// Calls `then` on the worker's loop when `wait` is over, or the context's stop token is set, which `then` looks at.
  /// A call waits for one thing at a time, after() or block(): another one throws std::logic_error. Once the answer is
  /// given nothing is called.
  void after(std::chrono::nanoseconds wait, std::function<void()> then) const {
    if (!state_->given) state_->context->after(wait, continuation(std::move(then)));
  }
  /// Calls `then` in a slot's thread, where it may block; it returns once it has answered.
  void block(std::function<void()> then) const {
    if (!state_->given) state_->context->block(continuation(std::move(then)));
  }

  /// Calls `then`, if there is no answer yet; what it throws is the call's failure.
  template <typename Then>
  void go_on(const Then& then) const {
    try {
      if (!state_->given) then();
    } catch (...) {
      state_->give([thrown = std::current_exception()]() -> Result<Value> { std::rethrow_exception(thrown); });
    }
  }

 private:
  struct State {
    State(Request asked, std::shared_ptr<AsyncContext> its_context, Take taker)
        : request(std::move(asked)), context(std::move(its_context)), take(std::move(taker)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { give({}); }
    void give(const std::function<Result<Value>()>& value) {
      if (!given.exchange(true)) take(value);
    }

    const Request request;
    const std::shared_ptr<AsyncContext> context;
    const Take take;
    std::atomic<bool> given = false;
  };

  [[nodiscard]] std::function<void()> continuation(std::function<void()> then) const {
    return [call = *this, then = std::move(then)] { call.go_on(then); };
  }

  std::shared_ptr<State> state_;
};

using AsyncList = AsyncCall<ListRequest, ListPage>;
/// Answers each id, in order; an error in place of all answers is that of each.
using AsyncReadMany = AsyncCall<ReadManyRequest, std::vector<Result<Resource>>>;

}  // namespace muster
