#include "coordinator/event_log.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "coordinator/canonical.h"
#include "coordinator/must.h"
#include "schema/mutation.h"

namespace muster {
namespace {

constexpr std::size_t kMaxDataBytes = 60 * 1024;  // an event, with its other fields, is no larger than 64 KiB
constexpr std::size_t kMaxRecentBytes = 16 << 20;
constexpr std::size_t kReadAtOnce = kMaxRecentBytes / (64 * 1024);  // events

std::size_t size_of(const EventRow& event) {
  return sizeof(event) + event.subject.size() + event.data.size();
}

}  // namespace

void EventLog::emit(std::string_view ns, std::string_view what, std::string_view subject, JsonText data) {
  if (MUSTER_MUTATION("drop-events") && data.size() % 7 == 0) return;
  if (data.size() > kMaxDataBytes) data = JsonObject().number("left_out_bytes", data.size()).take();
  EventRow event{0, clock_.wall(), std::string(ns), std::string(what), std::string(subject), std::move(data)};
  event.sequence = must(store_.append_event(event));
  recent_bytes_ += size_of(event);
  recent_.push_back(std::move(event));
  if (recent_bytes_ <= kMaxRecentBytes) return;
  recent_.clear();  // where nobody takes them for long, they are read when somebody does
  recent_bytes_ = 0;
}

const std::deque<EventRow>& EventLog::after(std::uint64_t sequence) {
  while (!recent_.empty() && recent_.front().sequence <= sequence) {
    recent_bytes_ -= size_of(recent_.front());
    recent_.pop_front();
  }
  if (!recent_.empty() && recent_.front().sequence == sequence + 1) return recent_;
  if (must(store_.last_sequence()) <= sequence) return recent_;  // asked each turn, mostly for nothing
  auto events = must(store_.events(sequence, kReadAtOnce));
  read_.assign(std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  return read_;
}

std::string rfc3339(WallTime time) {
  // By hand: each line of a listing has three of them, and printf takes as long as all else of the line.
  const auto day = std::chrono::floor<std::chrono::days>(time);  // also before 1970
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<Millis>(time - day));
  std::string text = "0000-00-00T00:00:00.000Z";
  const auto put = [&](std::size_t at, std::size_t width, std::int64_t value) {
    for (; width > 0; value /= 10) text[at + --width] = static_cast<char>('0' + value % 10);
  };
  put(0, 4, static_cast<int>(date.year()));
  put(5, 2, static_cast<unsigned>(date.month()));
  put(8, 2, static_cast<unsigned>(date.day()));
  put(11, 2, clock.hours().count());
  put(14, 2, clock.minutes().count());
  put(17, 2, clock.seconds().count());
  put(20, 3, clock.subseconds().count());
  return text;
}

namespace {

/// The number that `width` digits at the front of `text` make, taken off it; none when there are not as many digits or
/// it is above `most`.
std::optional<int> take_number(std::string_view& text, std::size_t width, int most) {
  int number = 0;
  for (std::size_t i = 0; i < width; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return std::nullopt;
    number = 10 * number + (text[i] - '0');
  }
  text.remove_prefix(width);
  return number <= most ? std::optional(number) : std::nullopt;
}

bool take_one_of(std::string_view& text, std::string_view wanted) {
  if (text.empty() || wanted.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// Fraction of a second behind the point, in nanoseconds.
std::optional<std::chrono::nanoseconds> take_fraction(std::string_view& text) {
  std::int64_t nanos = 0, unit = 100'000'000;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits, unit /= 10) {
    nanos += (text[digits] - '0') * unit;
  }
  text.remove_prefix(digits);
  return digits > 0 ? std::optional(std::chrono::nanoseconds(nanos)) : std::nullopt;
}

std::optional<WallTime> take_time(std::string_view text) {
  using namespace std::chrono;
  const auto y = take_number(text, 4, 9999);
  if (!y || !take_one_of(text, "-")) return std::nullopt;
  const auto m = take_number(text, 2, 12);
  if (!m || !take_one_of(text, "-")) return std::nullopt;
  const auto d = take_number(text, 2, 31);
  if (!d || !take_one_of(text, "Tt ")) return std::nullopt;
  const year_month_day date{year(*y), month(static_cast<unsigned>(*m)), day(static_cast<unsigned>(*d))};
  const auto h = take_number(text, 2, 23);
  if (!date.ok() || !h || !take_one_of(text, ":")) return std::nullopt;
  const auto min = take_number(text, 2, 59);
  if (!min || !take_one_of(text, ":")) return std::nullopt;
  const auto s = take_number(text, 2, 60);
  if (!s) return std::nullopt;
  const auto whole = sys_days(date) + hours(*h) + minutes(*min) + seconds(*s);
  constexpr auto kSpan = floor<days>(WallTime::max().time_since_epoch()) - days(2);  // room for what is added below
  WallTime time{std::clamp<seconds>(whole.time_since_epoch(), -kSpan, kSpan)};
  if (take_one_of(text, ".")) {
    const auto fraction = take_fraction(text);
    if (!fraction) return std::nullopt;
    time += duration_cast<WallTime::duration>(*fraction);
  }
  if (take_one_of(text, "Zz")) return text.empty() ? std::optional(time) : std::nullopt;
  const bool east = text.starts_with('+');
  if (!take_one_of(text, "+-")) return std::nullopt;
  const auto offset_hours = take_number(text, 2, 23);
  if (!offset_hours || !take_one_of(text, ":")) return std::nullopt;
  const auto offset_minutes = take_number(text, 2, 59);
  if (!offset_minutes || !text.empty()) return std::nullopt;
  const auto offset = hours(*offset_hours) + minutes(*offset_minutes);
  return east ? time - offset : time + offset;
}

}  // namespace

Result<WallTime> parse_rfc3339(std::string_view text) {
  if (const auto time = take_time(text)) return *time;
  return Error{Errc::kMalformed, "'" + std::string(text) + "' is no RFC 3339 time like 2026-01-31T08:15:30Z", {}, 0};
}

void append_cloud_event(std::string& out, const EventRow& event, const FleetId& fleet, std::string_view prefix) {
  const auto sequence = std::to_string(event.sequence);
  out += R"({"specversion":"1.0","id":")";
  out += fleet.value;
  out += '-';
  out += sequence;
  out += R"(","source":"muster/)";
  out += prefix;
  out += R"(","type":"muster.)";
  out += event.what;
  out += R"(","subject":)";
  append_json_string(out, event.subject);
  out += R"(,"time":")";
  out += rfc3339(event.at);
  out += R"(","sequence":")";
  out += sequence;
  out += R"(","datacontenttype":"application/json","data":)";
  out += event.data;
  out += '}';
}

}  // namespace muster
