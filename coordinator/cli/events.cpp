#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ostream>
#include <utility>

#include "coordinator/cli/verbs.h"
#include "coordinator/config.h"
#include "coordinator/event_log.h"

namespace muster::cli {
namespace {

constexpr Millis kListen{200};

/// `text` as a sequence number, 0 when it is none.
std::uint64_t sequence_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

/// Prints each event once and in order, wherever it comes from: the log by the API, or the bus.
class EventFeed {
 public:
  EventFeed(Client& client, Screen& screen, const EventsOptions& options)
      : client_(client),
        options_(options),
        left_(options.limit),
        list_(screen,
              {column("TIME", "time"), column("SEQUENCE", "sequence", Align::kRight), column("TYPE", "type"),
               column("SUBJECT", "subject"), column("DATA", "data")},
              "no events") {}

  /// What the log holds after `since`.
  Result<void> catch_up(const std::string& since) {
    Json request = Json::object();
    if (!since.empty()) request["since"] = since;
    return each_item(
        client_, "events", request,
        [&](const std::string& item) {
          take(Json::parse(item), item);
          return !done();
        },
        [&] { writable_ = list_.flush(); });
  }

  /// The body of one message: an event, or an array of consecutive ones. Messages may be lost, come twice, or come
  /// while we read the log: one that does not follow what was printed last sends us to the log.
  Result<void> hear(const std::string& body) {
    const Json message = Json::parse(body, nullptr, false);
    if (message.is_discarded()) return {};
    for (const Json& event : message.is_array() ? message : Json::array({message})) {
      const std::uint64_t sequence = sequence_number(field(event, "sequence"));
      if (last_ != 0 && sequence > last_ + 1) {
        const auto caught_up = catch_up(std::to_string(last_));
        // A coordinator that is away for a moment: the log has this one, too.
        behind_ = !caught_up && exit_status(caught_up.error()) == 3;
        if (!caught_up) return behind_ ? Result<void>() : caught_up;
      }
      take(event, event.dump(-1, ' ', false, Json::error_handler_t::replace));
      if (done()) break;
    }
    writable_ = list_.flush();
    return {};
  }

  /// What was told while nobody was here to hear it, for those who may ask. A coordinator that is away for a moment is
  /// asked again.
  Result<void> catch_up_again() {
    if (last_ == 0) return {};
    const auto caught_up = catch_up(std::to_string(last_));
    behind_ = !caught_up && exit_status(caught_up.error()) == 3;
    const bool goes_on = caught_up || behind_ || caught_up.error().code == Errc::kAccessDenied;
    return goes_on ? Result<void>() : caught_up;
  }

  /// All up to `sequence` has been printed, or is of before.
  void begin_after(std::uint64_t sequence) { last_ = std::max(last_, sequence); }

  [[nodiscard]] bool behind() const { return behind_; }
  [[nodiscard]] bool done() const { return !writable_ || (options_.limit > 0 && left_ == 0); }
  [[nodiscard]] std::uint64_t last() const { return last_; }
  bool finish() { return list_.finish(); }

 private:
  void take(const Json& event, const std::string& text) {
    const std::uint64_t sequence = sequence_number(field(event, "sequence"));
    if (sequence <= last_ && sequence != 0) return;
    last_ = sequence;
    if (!options_.type.empty() && !matches_event_type(options_.type, field(event, "type"))) return;
    list_.add(text);
    if (left_ > 0) --left_;
  }

  Client& client_;
  const EventsOptions& options_;
  std::uint64_t last_ = 0;  // sequence of the latest event, printed or not; 0: none yet
  std::uint64_t left_;
  bool behind_ = false;  // there is more in the log
  bool writable_ = true;
  ListWriter list_;
};

/// Sequence of the latest event; empty for who may not ask.
Result<std::string> latest(Client& client) {
  const auto answer = client.ask("status", Json::object());  // whether there is anybody to hear of, too
  if (!answer) return answer.error().code == Errc::kAccessDenied ? Result<std::string>(std::string()) : answer.error();
  const Json status = Json::parse(*answer, nullptr, false);
  const auto at = Json::json_pointer("/events/last");
  return status.is_object() && status.contains(at) ? status[at].dump() : std::string();
}

Result<void> follow(Client& client, EventFeed& feed, const EventsOptions& options, const Interrupted& interrupted) {
  const auto since = options.since.empty() ? latest(client) : Result<std::string>(options.since);
  if (!since) return since.error();
  if (auto listening = client.listen(); !listening) return listening;  // first, so that nothing falls between
  auto connections = client.connections();
  if (!since->empty()) {
    if (auto caught_up = feed.catch_up(*since); !caught_up) return caught_up;
    feed.begin_after(sequence_number(*since));
  }
  while (!interrupted() && !feed.done()) {
    for (const std::string& body : client.heard(kListen)) {
      if (auto heard = feed.hear(body); !heard) return interrupted() ? Result<void>() : heard;
      if (feed.done()) break;
    }
    if (const auto now = std::exchange(connections, client.connections()); now == connections && !feed.behind())
      continue;
    if (auto caught_up = feed.catch_up_again(); !caught_up) return interrupted() ? Result<void>() : caught_up;
  }
  return {};
}

}  // namespace

bool matches_event_type(const std::string& pattern, const std::string& type) {
  return fnmatch(pattern.c_str(), type.c_str(), 0) == 0 || fnmatch(("muster." + pattern).c_str(), type.c_str(), 0) == 0;
}

Result<std::string> time_before(std::string_view text, WallTime now) {
  if (const auto ago = parse_duration(text)) {
    return rfc3339(now - std::min(*ago, std::chrono::duration_cast<Millis>(now.time_since_epoch())));
  }
  if (const auto time = parse_rfc3339(text); !time) {
    return Error{time.error().code, time.error().message + ", and no duration like 10m", {}, 0};
  }
  return std::string(text);
}

int events(Client& client, Screen& screen, const EventsOptions& options, const Interrupted& interrupted) {
  EventFeed feed(client, screen, options);
  const auto done = options.follow ? follow(client, feed, options, interrupted) : feed.catch_up(options.since);
  if (!done) return report(screen, done.error());
  return feed.finish() ? 0 : 1;
}

}  // namespace muster::cli
