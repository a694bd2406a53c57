#include "coordinator/publisher.h"

#include <algorithm>
#include <charconv>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "coordinator/must.h"

namespace muster {
namespace {

constexpr std::size_t kMaxBatchBytes = 60 * 1024;  // leaves room for the headers within 64 KiB
constexpr std::size_t kMaxWindow = 64;             // batches without acknowledgement
constexpr Millis kAckTimeout{5000};
constexpr Millis kAskEvery{2000};
constexpr Millis kLookForStreamEvery{30'000};  // while events go out without one
constexpr std::string_view kBatchType = "application/cloudevents-batch+json";
constexpr std::string_view kEventType = "application/cloudevents+json";
constexpr int kStreamNameInUse = 10058;

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

}  // namespace

Publisher::Publisher(const Config& config, const Subjects& subjects, Store& store, EventLog& events, std::string inbox,
                     spdlog::logger& log)
    : config_(config), subjects_(subjects), store_(store), events_(events), inbox_(std::move(inbox)), log_(log) {}

void Publisher::start(TimePoint now, Effects& effects) {
  published_ = noted_ = sent_ = must(store_.published());
  ask_for_stream(now, effects);
}

void Publisher::ask_for_stream(TimePoint now, Effects& effects) {
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
       inbox_ + ".stream",
       ask_ == Ask::kInfo ? std::string() : stream.dump(),
       {}});
}

void Publisher::on_reply(std::string_view what, const Message& message, TimePoint now) {
  if (what == "stream") {
    on_stream_reply(message, now);
    return;
  }
  std::uint64_t last = 0;
  const auto digits = what.starts_with("ack.") ? what.substr(4) : std::string_view();
  std::from_chars(digits.data(), digits.data() + digits.size(), last);
  const auto batch = std::ranges::find(window_, last, &Batch::last);
  if (batch == window_.end()) return;
  const auto answer = nlohmann::json::parse(message.data, nullptr, false);
  if (message.no_responders || !answer.is_object() || answer.contains("error")) {
    // The stream is gone or refuses: what is on its way is sent again once it is there.
    if (mode_ == Mode::kStream) log_.warn("the event stream refuses events: {}", error_of(answer).description);
    mode_ = Mode::kAsking;
    ask_again_ = now;
    return;
  }
  batch->acknowledged = true;
  while (!window_.empty() && window_.front().acknowledged) {
    published_ = window_.front().last;
    window_.pop_front();
  }
}

void Publisher::go_without_stream(std::string_view why) {
  if (mode_ != Mode::kCore) log_.warn("{}: events go out once, and stay readable in the store", why);
  mode_ = Mode::kCore;
  ask_ = Ask::kCreate;
}

void Publisher::on_stream_refused(const nlohmann::json& answer, TimePoint now) {
  const auto error = error_of(answer);
  if (ask_ == Ask::kCreate && error.code == kStreamNameInUse) {
    ask_ = Ask::kInfo;
    ask_again_ = now;
  } else if (ask_ == Ask::kCreate) {
    go_without_stream("no JetStream");
  } else {
    go_without_stream("the event stream cannot be looked at: " + error.description);
  }
}

void Publisher::on_stream_reply(const Message& message, TimePoint now) {
  const auto answer = nlohmann::json::parse(message.data, nullptr, false);
  const bool refused = message.no_responders || !answer.is_object() || answer.contains("error");
  if (refused && ask_ != Ask::kUpdate) {
    on_stream_refused(answer, now);
    return;
  }
  if (ask_ == Ask::kInfo) {
    const auto has = answer.value(nlohmann::json::json_pointer("/config/subjects"), nlohmann::json());
    if (has != nlohmann::json::array({subjects_.event_logs()})) {
      go_without_stream("stream " + subjects_.event_stream() + " holds other subjects: it is another fleet's");
      return;
    }
    ask_ = Ask::kUpdate;
    ask_again_ = now;
    return;
  }
  if (refused) {  // it exists and cannot be changed so: it serves as it is
    log_.warn("the event stream {} keeps its configuration: {}", subjects_.event_stream(),
              error_of(answer).description);
  }
  if (mode_ != Mode::kStream) log_.info("events go to stream {}", subjects_.event_stream());
  mode_ = Mode::kStream;
  ask_ = Ask::kCreate;
  ask_again_ = TimePoint::max();
  for (auto& batch : window_) batch.sent = {};
}

Publisher::Batch Publisher::make_batch(const std::deque<EventRow>& events, std::size_t& next) const {
  const auto& first = events[next];
  std::string body;
  std::size_t count = 0;
  std::uint64_t last = 0;
  for (; next < events.size() && events[next].what == first.what && events[next].ns == first.ns; ++next) {
    const auto before = body.size();
    body += count == 0 ? '[' : ',';
    append_cloud_event(body, events[next], store_.fleet(), subjects_.prefix());
    if (count > 0 && body.size() > kMaxBatchBytes) {
      body.resize(before);
      break;
    }
    last = events[next].sequence;
    ++count;
  }
  if (count == 1) {
    body.erase(0, 1);
  } else {
    body += ']';
  }
  Batch batch{first.sequence, last, {}, false, {}};
  const bool stream = mode_ == Mode::kStream;
  batch.message.subject = stream ? subjects_.event_log(first.ns, first.what) : subjects_.event(first.ns, first.what);
  if (stream) batch.message.reply = inbox_ + ".ack." + std::to_string(last);
  batch.message.data = std::move(body);
  batch.message.headers.push_back({"content-type", std::string(count == 1 ? kEventType : kBatchType)});
  batch.message.headers.push_back(
      {"Nats-Msg-Id", store_.fleet().value + "-" + std::to_string(first.sequence) + "-" + std::to_string(last)});
  return batch;
}

void Publisher::send_again(TimePoint now, Effects& effects) {
  for (auto& batch : window_) {
    if (batch.acknowledged || now - batch.sent < kAckTimeout) continue;
    batch.sent = now;
    ++resent_;
    effects.at_once.push_back(batch.message);
  }
}

void Publisher::pump(TimePoint now, Effects& effects) {
  if (now >= ask_again_) ask_for_stream(now, effects);
  if (mode_ == Mode::kAsking) return;
  if (mode_ == Mode::kCore && !window_.empty()) {  // was a stream before: what it did not take goes out plainly
    sent_ = published_;
    window_.clear();
  }
  send_again(now, effects);
  while (window_.size() < kMaxWindow) {
    const auto& events = events_.after(sent_);
    if (events.empty()) return;
    for (std::size_t next = 0; next < events.size() && window_.size() < kMaxWindow;) {
      auto batch = make_batch(events, next);
      batch.sent = now;
      sent_ = batch.last;
      effects.at_once.push_back(batch.message);
      if (mode_ == Mode::kStream) {
        window_.push_back(std::move(batch));
      } else {
        published_ = sent_;
      }
    }
  }
}

void Publisher::note_published() {
  if (noted_ == published_) return;
  noted_ = published_;
  must(store_.set_published(published_));
}

void Publisher::reconnect(TimePoint now) {
  for (auto& batch : window_) batch.sent = {};
  if (mode_ != Mode::kStream) ask_again_ = now;
}

TimePoint Publisher::next_due() const {
  auto due = ask_again_;
  if (!window_.empty() && mode_ == Mode::kStream) due = std::min(due, window_.front().sent + kAckTimeout);
  return due;
}

}  // namespace muster
