#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "coordinator/json_object.h"
#include "coordinator/store.h"

namespace muster {

/// Of a patch in an event; a larger one is in the history alone.
inline constexpr std::size_t kMaxPatchBytes = 16 * 1024;

/// Writes events into the store's outbox, in the transaction of what they report, and hands them out to be published.
/// Made anew when a transaction is taken back.
class EventLog {
 public:
  EventLog(Store& store, const Clock& clock) : store_(store), clock_(clock) {}
  /// `ns`       namespace, empty for none
  /// `what`     class and what: `resource.discovered`
  /// `subject`  what it is about
  /// `data`     left out, with a word of it, beyond 60 KiB
  /// Throws StoreFailure.
  void emit(std::string_view ns, std::string_view what, std::string_view subject, JsonText data);
  /// Events after a sequence, in order, as many as are at hand; none: there are no more. Valid until the next call of
  /// anything. Throws StoreFailure.
  const std::deque<EventRow>& after(std::uint64_t sequence);

 private:
  Store& store_;
  const Clock& clock_;
  std::deque<EventRow> recent_;  // the last ones that were written, without a gap
  std::size_t recent_bytes_ = 0;
  std::deque<EventRow> read_;  // those that had to be read
};

/// RFC 3339 in UTC with milliseconds: `2026-01-31T08:15:30.123Z`.
std::string rfc3339(WallTime time);
/// What lies beyond the clock's range (the years 1678 to 2261) is read as its begin or end.
/// errors   kMalformed
Result<WallTime> parse_rfc3339(std::string_view text);

/// Adds one CloudEvent 1.0 as JSON. `source` is `muster/<prefix>`.
void append_cloud_event(std::string& out, const EventRow& event, const FleetId& fleet, std::string_view prefix);

}  // namespace muster
