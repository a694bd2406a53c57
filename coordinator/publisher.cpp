#include "coordinator/publisher.h"

#include <algorithm>
#include <charconv>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/must.h"
#include "schema/mutation.h"

namespace muster {
namespace {

constexpr std::size_t kMaxBatchBytes = 60 * 1024;  // leaves room for the headers within 64 KiB
constexpr std::size_t kHeaderBytes = 512;          // at most
constexpr std::size_t kMaxWindow = 64;             // batches without acknowledgement; without a stream: of one call
constexpr Millis kAckTimeout{5000};
constexpr Millis kAskEvery{2000};
constexpr Millis kLookForStreamEvery{30'000};  // while events go out without one
constexpr Millis kPatience{60'000};            // with a stream that is away, or an API that does not answer
constexpr std::string_view kBatchType = "application/cloudevents-batch+json";
constexpr std::string_view kEventType = "application/cloudevents+json";
constexpr std::string_view kBehind = "Nats-Expected-Last-Msg-Id";
constexpr std::string_view kUnknown = "-";  // no batch has this id
constexpr int kStreamNameInUse = 10058;
constexpr int kNotBehind = 10070;
constexpr int kUnavailable[] = {10008, 10009};  // of a cluster that elects a leader

/// What JetStream says went wrong; whoever answers on an inbox may say anything.
struct StreamError {
  int code = 0;
  std::string description = "no reason given";
};

StreamError error_of(const nlohmann::json& answer) {
  StreamError error;
  const auto it = answer.is_object() ? answer.find("error") : answer.end();
  if (it == answer.end() || !it->is_object()) return error;
  if (const auto code = it->find("err_code"); code != it->end() && code->is_number_integer())
    error.code = code->get<int>();
  if (const auto text = it->find("description"); text != it->end() && text->is_string()) error.description = *text;
  return error;
}

/// Whether it is a stream that answers, and not this one: one that holds the same subjects in another domain, or has
/// taken them since this one went. Nothing it has goes to those who watch.
bool is_of_other_stream(const nlohmann::json& answer, const std::string& stream) {
  const auto it = answer.is_object() ? answer.find("stream") : answer.end();
  return it != answer.end() && *it != stream;
}

/// The last event of a batch of this fleet, by its id.
std::optional<std::uint64_t> last_of(std::string_view id, const FleetId& fleet) {
  if (!id.starts_with(fleet.value + "-")) return std::nullopt;
  id.remove_prefix(id.rfind('-') + 1);
  std::uint64_t last = 0;
  const auto end = id.data() + id.size();
  return std::from_chars(id.data(), end, last).ptr == end ? std::optional(last) : std::nullopt;
}

/// As it goes where the bus does not take it whole: its data is in the store.
EventRow without_data(EventRow event) {
  event.data = JsonObject().number("left_out_bytes", event.data.size()).take();
  return event;
}

}  // namespace

Publisher::Publisher(const Config& config, const Subjects& subjects, Store& store, EventLog& events, std::string inbox,
                     spdlog::logger& log)
    : config_(config), subjects_(subjects), store_(store), events_(events), inbox_(std::move(inbox)), log_(log) {}

void Publisher::start(TimePoint now, Effects& effects) {
  published_ = noted_ = sent_ = must(store_.published());
  waits_since_ = now;
  ask_for_stream(now, effects);
}

void Publisher::ask_for_stream(TimePoint now, Effects& effects) {
  asked_ = now;
  ask_again_ = now + (mode_ == Mode::kCore ? kLookForStreamEvery : kAskEvery);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(config_.limits.event_age).count();
  const nlohmann::json stream{{"name", subjects_.event_stream()},
                              {"description", "What happened in the fleet " + subjects_.prefix()},
                              {"subjects", {subjects_.event_logs()}},
                              {"retention", "limits"},
                              {"discard", "old"},
                              {"storage", "file"},
                              {"num_replicas", 1},
                              {"max_age", nanos},
                              {"max_bytes", config_.limits.event_bytes},
                              {"max_consumers", -1},
                              {"max_msgs", -1},
                              {"max_msg_size", -1},
                              {"duplicate_window", std::min<std::int64_t>(nanos, 120'000'000'000)},
                              {"republish", {{"src", subjects_.event_logs()}, {"dest", subjects_.events()}}}};
  constexpr std::string_view kVerbs[] = {"CREATE", "INFO", "UPDATE"};  // as Ask
  effects.at_once.push_back(
      {"$JS.API.STREAM." + std::string(kVerbs[static_cast<std::size_t>(ask_)]) + "." + subjects_.event_stream(),
       inbox_ + ".stream." + std::to_string(question_),
       ask_ == Ask::kInfo ? std::string() : stream.dump(),
       {}});
}

void Publisher::on_reply(std::string_view what, const Message& message, TimePoint now) {
  constexpr std::string_view kStream = "stream.";
  if (what.starts_with(kStream)) {
    on_stream_reply(what.substr(kStream.size()), message, now);
    return;
  }
  const auto subject = inbox_ + '.' + std::string(what);
  const auto batch = std::ranges::find_if(window_, [&](const Batch& one) { return one.message.reply == subject; });
  if (batch == window_.end()) return;
  const auto answer = nlohmann::json::parse(message.data, nullptr, false);
  if (is_of_other_stream(answer, subjects_.event_stream())) return;
  const auto error = error_of(answer);
  if (error.code == kNotBehind) {
    on_not_behind(*batch, error.description);
    return;
  }
  if (message.no_responders || !answer.is_object() || answer.contains("error")) {
    // The stream is gone or refuses: what is on its way is sent again once it is there.
    batch->rejected = true;
    if (mode_ != Mode::kStream) return;
    log_.warn("the event stream refuses events: {}", error.description);
    wait_for_stream(now);
    return;
  }
  batch->acknowledged = last_known_ = true;
  untaken_since_ = TimePoint::max();
  while (!window_.empty() && window_.front().acknowledged) {
    published_ = window_.front().last;
    window_.pop_front();
  }
  if (!window_.empty() && window_.front().refused) window_.front().sent = {};
}

/// A batch follows the one before as soon as that is there. What is before the first was there: then the stream has
/// more than is known here, or is another.
void Publisher::on_not_behind(Batch& batch, const std::string& why) {
  batch.refused = true;
  if (&batch != &window_.front() || batch.message.headers.back().name != kBehind) return;
  last_known_ = true;
  untaken_since_ = TimePoint::max();
  const auto id = why.substr(why.rfind(' ') + 1);
  const auto last = last_of(id, store_.fleet());
  if (last && may_be_last(*last)) {
    published_ = sent_ = *last;
    last_batch_ = id;
    window_.clear();
    return;
  }
  batch.message.headers.pop_back();
  batch.sent = {};
}

/// A server may name what it has refused to take.
bool Publisher::may_be_last(std::uint64_t sequence) {
  const auto batch = std::ranges::find(window_, sequence, &Batch::last);
  return sequence >= published_ && sequence <= must(store_.last_sequence()) &&
         (batch == window_.end() || !batch->rejected);
}

void Publisher::wait_for_stream(TimePoint now) {
  mode_ = Mode::kAsking;
  ask_again_ = std::max(now, asked_ + kAskEvery);
  waits_since_ = untaken_since_ = std::min(untaken_since_, now);
}

void Publisher::go_without_stream(std::string_view why, TimePoint now) {
  if (mode_ != Mode::kCore) log_.warn("{}: events go out once, and stay readable in the store", why);
  mode_ = Mode::kCore;
  ask_ = Ask::kCreate;
  ask_again_ = now + kLookForStreamEvery;
  last_known_ = false;
}

void Publisher::on_stream_refused(const Message& message, const nlohmann::json& answer, TimePoint now) {
  const auto error = error_of(answer);
  if (ask_ == Ask::kCreate && error.code == kStreamNameInUse) {
    ask_ = Ask::kInfo;
    ask_again_ = now;
    return;
  }
  const bool away =
      std::ranges::find(kUnavailable, error.code) != std::end(kUnavailable) || (message.no_responders && had_stream_);
  if (mode_ == Mode::kAsking && away) return;  // it is asked for again
  if (ask_ == Ask::kUpdate && !away) {         // it exists and cannot be changed so: it serves as it is
    log_.warn("the event stream {} keeps its configuration: {}", subjects_.event_stream(), error.description);
    return on_stream_found();
  }
  if (ask_ == Ask::kCreate) {
    const bool full = error.description.find("insufficient storage") != std::string::npos;
    go_without_stream(message.no_responders ? "no JetStream"
                                            : "no event stream: " + error.description +
                                                  (full ? ": limits.event_bytes is more than the server has left" : ""),
                      now);
  } else {
    go_without_stream("the event stream cannot be looked at: " + error.description, now);
  }
}

void Publisher::on_stream_found() {
  if (mode_ != Mode::kStream) log_.info("events go to stream {}", subjects_.event_stream());
  mode_ = Mode::kStream;
  had_stream_ = true;
  ask_ = Ask::kCreate;
  ask_again_ = TimePoint::max();
  if (!window_.empty()) window_.front().sent = {};
}

void Publisher::on_stream_reply(std::string_view number, const Message& message, TimePoint now) {
  if (number != std::to_string(question_)) return;
  ++question_;  // it may have several answers
  const auto answer = nlohmann::json::parse(message.data, nullptr, false);
  const bool refused = message.no_responders || !answer.is_object() || answer.contains("error");
  if (refused) return on_stream_refused(message, answer, now);
  if (ask_ == Ask::kInfo) {
    const auto config = answer.find("config");
    const bool known = config != answer.end() && config->is_object();
    if (!known || config->value("subjects", nlohmann::json()) != nlohmann::json::array({subjects_.event_logs()})) {
      go_without_stream("stream " + subjects_.event_stream() + " holds other subjects: it is another fleet's", now);
      return;
    }
    ask_ = Ask::kUpdate;
    ask_again_ = now;
    return;
  }
  on_stream_found();
}

Publisher::Batch Publisher::make_batch(const std::deque<EventRow>& events, std::size_t& next, std::size_t most) {
  const auto& first = events[next];
  std::string body;
  std::size_t count = 0;
  std::uint64_t last = 0;
  for (; next < events.size() && events[next].what == first.what && events[next].ns == first.ns; ++next) {
    const auto before = body.size();
    body += count == 0 ? '[' : ',';
    append_cloud_event(body, events[next], store_.fleet(), subjects_.prefix());
    if (count > 0 && body.size() >= std::min(kMaxBatchBytes, most)) {
      body.resize(before);
      break;
    }
    if (body.size() > most) {
      body.resize(before + 1);
      append_cloud_event(body, without_data(events[next]), store_.fleet(), subjects_.prefix());
    }
    last = events[next].sequence;
    ++count;
  }
  if (count == 1) {
    body.erase(0, 1);
  } else {
    body += ']';
  }
  Batch batch{first.sequence, last, {}, false, false, false, {}};
  const bool stream = mode_ == Mode::kStream;
  batch.message.subject = stream ? subjects_.event_log(first.ns, first.what) : subjects_.event(first.ns, first.what);
  const auto portion = std::to_string(first.sequence) + "-" + std::to_string(last);
  // What is answered belongs to these events, and not to what was sent before in other portions, whoever sent it.
  if (stream) batch.message.reply = inbox_ + ".ack." + portion;
  batch.message.data = std::move(body);
  batch.message.headers.push_back({"content-type", std::string(count == 1 ? kEventType : kBatchType)});
  auto id = store_.fleet().value + "-" + portion;
  batch.message.headers.push_back({"Nats-Msg-Id", id});
  if (!stream || MUSTER_MUTATION("events-overtake")) return batch;
  batch.message.headers.push_back({std::string(kBehind), last_known_ ? last_batch_ : std::string(kUnknown)});
  last_batch_ = std::move(id);
  return batch;
}

void Publisher::send_again(TimePoint now, Effects& effects) {
  if (window_.empty() || now - window_.front().sent < kAckTimeout) return;
  if (window_.front().sent != TimePoint{}) {
    untaken_since_ = std::min(untaken_since_, now);
    if (now - untaken_since_ >= kPatience) {
      go_without_stream("the event stream does not answer", now);
      return;
    }
  }
  for (auto& batch : window_) {  // none of them is taken before the first
    if (batch.acknowledged) continue;
    batch.sent = now;
    batch.refused = false;
    ++resent_;
    effects.at_once.push_back(batch.message);
  }
}

void Publisher::pump(TimePoint now, Effects& effects, std::size_t max_payload) {
  go_on_at_ = TimePoint::max();
  if (now >= ask_again_) ask_for_stream(now, effects);
  if (mode_ == Mode::kAsking && now - waits_since_ >= kPatience) go_without_stream("no event stream takes them", now);
  if (mode_ == Mode::kAsking) return;
  if (mode_ == Mode::kStream) send_again(now, effects);
  if (mode_ == Mode::kCore && !window_.empty()) {  // was a stream before: what it did not take goes out plainly
    sent_ = published_;
    window_.clear();
  }
  const std::size_t most = mode_ == Mode::kStream && !last_known_ ? 1 : kMaxWindow;
  const auto bytes = max_payload - std::min(max_payload, kHeaderBytes);
  std::size_t plain = 0;
  while (window_.size() + plain < most) {
    const auto& events = events_.after(sent_);
    if (events.empty()) break;
    for (std::size_t next = 0; next < events.size() && window_.size() + plain < most;) {
      auto batch = make_batch(events, next, bytes);
      batch.sent = now;
      sent_ = batch.last;
      effects.at_once.push_back(batch.message);
      if (mode_ == Mode::kStream) {
        window_.push_back(std::move(batch));
      } else {
        published_ = sent_;
        ++plain;
      }
    }
  }
  go_on_at_ = plain == most ? now : TimePoint::max();
}

void Publisher::note_published() {
  if (noted_ == published_) return;
  noted_ = published_;
  must(store_.set_published(published_));
}

void Publisher::reconnect(TimePoint now) {
  if (!window_.empty()) window_.front().sent = {};
  untaken_since_ = TimePoint::max();
  if (mode_ == Mode::kStream) return;
  ask_ = Ask::kCreate;
  ask_again_ = waits_since_ = now;
}

TimePoint Publisher::next_due() const {
  auto due = std::min(ask_again_, go_on_at_);
  if (!window_.empty() && mode_ == Mode::kStream) due = std::min(due, window_.front().sent + kAckTimeout);
  return due;
}

}  // namespace muster
