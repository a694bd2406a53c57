#include "coordinator/event_log.h"

#include <array>
#include <cstdio>
#include <ctime>

#include "coordinator/canonical.h"
#include "coordinator/must.h"

namespace muster {

void JsonObject::key(std::string_view name) {
  if (text_.size() > 1) text_ += ',';
  text_ += '"';
  text_ += name;
  text_ += "\":";
}

JsonObject& JsonObject::text(std::string_view name, std::string_view value) {
  key(name);
  append_json_string(text_, value);
  return *this;
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
  key(name);
  text_ += json;
  return *this;
}

JsonObject& JsonObject::number(std::string_view name, std::uint64_t value) {
  return raw(name, std::to_string(value));
}

JsonObject& JsonObject::flag(std::string_view name, bool value) {
  return raw(name, value ? "true" : "false");
}

void EventLog::emit(std::string_view ns, std::string_view what, std::string_view subject, JsonText data) {
  must(store_.append_event(
      {0, clock_.wall(), std::string(ns), std::string(what), std::string(subject), std::move(data)}));
}

std::string rfc3339(WallTime time) {
  using std::chrono::duration_cast;
  const auto millis = duration_cast<Millis>(time.time_since_epoch()).count();
  const std::time_t seconds = millis / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  const int size = std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                                 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                                 static_cast<int>(millis % 1000));
  return {text.data(), static_cast<std::size_t>(size)};
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  const Error bad{Errc::kMalformed, "'" + std::string(text) + "' is no RFC 3339 time like 2026-01-31T08:15:30Z", {}, 0};
  std::tm parts{};
  int used = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &used) != 6 ||
      used != 19) {
    return bad;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const std::tm asked = parts;
  auto time = std::chrono::system_clock::from_time_t(timegm(&parts));
  if (parts.tm_mon != asked.tm_mon || parts.tm_mday != asked.tm_mday || parts.tm_hour != asked.tm_hour) return bad;
  std::string_view rest = text.substr(19);
  if (rest.starts_with('.')) {
    std::size_t digits = 1;
    std::int64_t nanos = 0, unit = 100'000'000;
    while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') {
      nanos += (rest[digits++] - '0') * unit;
      unit /= 10;
    }
    if (digits == 1) return bad;
    time += std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanos));
    rest.remove_prefix(digits);
  }
  if (rest == "Z" || rest == "z") return time;
  int hours = 0, minutes = 0;
  if (rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') &&
      std::sscanf(std::string(rest.substr(1)).c_str(), "%2d:%2d", &hours, &minutes) == 2) {
    const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
    return rest[0] == '+' ? time - offset : time + offset;
  }
  return bad;
}

JsonText cloud_event(const EventRow& event, const FleetId& fleet, std::string_view prefix) {
  const auto sequence = std::to_string(event.sequence);
  return JsonObject()
      .text("specversion", "1.0")
      .text("id", fleet.value + "-" + sequence)
      .text("source", "muster/" + std::string(prefix))
      .text("type", "muster." + event.what)
      .text("subject", event.subject)
      .text("time", rfc3339(event.at))
      .text("sequence", sequence)
      .text("datacontenttype", "application/json")
      .raw("data", event.data)
      .take();
}

}  // namespace muster
