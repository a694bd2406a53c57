#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "cloud.h"
#include "muster/worker.h"
#include "state.h"

/// What changes the fake cloud, and how that goes wrong.
namespace muster::fake {

inline constexpr Millis kRetryAfter{100};  // what the cloud says with THROTTLING

/// Waits. False: stopped before.
bool take_time(std::chrono::microseconds time, const std::stop_token& stop);

/// What a call is about, for its line in the log.
struct CallInfo {
  std::string_view operation, type, native_id, name, idempotency_key;
};

/// One call to a cloud that has a state: its line in the log, and the failures that the config says, drawn from the
/// seed, the operation, the key and how many calls had this key before.
class Call {
 public:
  Call(State& state, const Config& config, std::int64_t now, const CallInfo& info, std::stop_token stop);

  /// What happens before the call has done anything; an error ends it.
  std::optional<Error> before();
  /// Writes why it is refused, which ends it.
  void refused(std::string_view outcome, std::string_view native_id);
  /// Writes how it went, and what after() will do; in the transaction of what it did.
  void done(std::string_view outcome, std::string_view native_id);
  /// What happens when all is done; an error is the answer.
  std::optional<Error> after();

  /// A number of this very call.
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
  [[nodiscard]] bool drawn(double rate, std::uint64_t purpose) const { return unit(mix(hash_, purpose)) < rate; }
  std::optional<Error> hang(const Latency& time);
  [[nodiscard]] Error failed(std::string_view when) const;

  State& state_;
  Failures failures_;
  std::optional<Errc> always_;
  std::string native_id_;
  std::stop_token stop_;
  std::int64_t number_ = 0;
  std::uint64_t hash_ = 0;
};

/// The object as it is: what was written, else what is computed. None when it never was or is there no more; not asked
/// is whether reads find it yet.
std::optional<Object> find(State& state, const Cloud& cloud, std::string_view type, std::string_view native_id);

// `config` has a state. Errors of opening it are those of State::open.
Result<Mutation> create(const Config& config, std::int64_t now, const CreateRequest& request, JobContext& context);
Result<Mutation> update(const Config& config, std::int64_t now, const UpdateRequest& request, JobContext& context);
Result<Mutation> remove(const Config& config, std::int64_t now, const DeleteRequest& request, JobContext& context);
Result<Mutation> status(const Config& config, std::int64_t now, const StatusRequest& request, JobContext& context);

}  // namespace muster::fake
