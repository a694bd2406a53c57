#pragma once

#include <string>
#include <string_view>

#include "schema/ids.h"

namespace muster {

/// Every NATS subject of a fleet, with its prefix. No other file spells one.
class Subjects {
 public:
  /// `prefix`   one or more tokens (`muster`, `team-a.muster`); see valid_prefix
  explicit Subjects(std::string prefix = "muster") : prefix_(std::move(prefix)) {}

  [[nodiscard]] const std::string& prefix() const { return prefix_; }

  [[nodiscard]] std::string job(std::string_view ns, std::string_view pool) const;
  [[nodiscard]] std::string worker_job(std::string_view ns, const WorkerId& worker) const;
  [[nodiscard]] std::string worker_control(std::string_view ns, const WorkerId& worker) const;
  [[nodiscard]] std::string reply(std::string_view ns, const CoordinatorId& coordinator, const Token& token) const;
  [[nodiscard]] std::string replies(const CoordinatorId& coordinator) const;  // wildcard over namespaces and tokens
  [[nodiscard]] std::string result(std::string_view ns) const;
  [[nodiscard]] std::string results() const;  // wildcard
  [[nodiscard]] std::string announce(std::string_view ns) const;
  [[nodiscard]] std::string announces() const;  // wildcard
  [[nodiscard]] std::string heartbeat(std::string_view ns) const;
  [[nodiscard]] std::string heartbeats() const;  // wildcard
  [[nodiscard]] std::string rollcall() const;
  [[nodiscard]] std::string api(std::string_view verb) const;
  [[nodiscard]] std::string apis() const;  // wildcard
  /// What observers subscribe to; `ns` may be empty (then `-`).
  [[nodiscard]] std::string event(std::string_view ns, std::string_view class_and_what) const;
  [[nodiscard]] std::string events() const;  // wildcard
  /// Where the coordinator hands an event to the stream, which republishes it on event().
  [[nodiscard]] std::string event_log(std::string_view ns, std::string_view class_and_what) const;
  [[nodiscard]] std::string event_logs() const;    // wildcard
  [[nodiscard]] std::string event_stream() const;  // name of the JetStream stream: MUSTER_EVENTS

 private:
  std::string prefix_;
};

/// Queue groups.
inline constexpr std::string_view kWorkersGroup = "workers";
inline constexpr std::string_view kCoordinatorsGroup = "coordinators";
inline constexpr std::string_view kDefaultPool = "default";

/// `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`: namespaces and pools.
bool valid_namespace(std::string_view text);
/// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`: names of targets.
bool valid_target_name(std::string_view text);
/// Dot-separated tokens of letters, digits, `_` and `-`, at most 64 bytes.
bool valid_prefix(std::string_view text);
/// One subject token: not empty, at most 64 bytes, no space, control character, dot or wildcard.
bool valid_token(std::string_view text);
/// First segment of a type name: `PG` of `PG::Table`.
std::string_view namespace_of(std::string_view type);
/// The `index`-th token of a subject after the prefix, empty when there is none: token(subject, 1) of
/// `muster.reply.PG.c.t` is `PG`.
std::string_view subject_token(std::string_view subject, std::string_view prefix, std::size_t index);

}  // namespace muster
