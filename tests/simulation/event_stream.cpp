#include "simulation/event_stream.h"

#include <vector>

#include <nlohmann/json.hpp>

namespace muster::sim {
namespace {

constexpr std::chrono::seconds kDuplicateWindow{120};

std::string header(const Message& message, std::string_view name) {
  for (const auto& one : message.headers) {
    if (one.name == name) return std::string(one.value);
  }
  return {};
}

std::string refusal(int code, std::string_view why) {
  return nlohmann::json{{"error", {{"code", 503}, {"err_code", code}, {"description", why}}}}.dump();
}

}  // namespace

EventStream::EventStream(MemoryBroker& broker, const Clock& clock, const std::string& prefix)
    : clock_(clock), subjects_(prefix), bus_(broker.connect("stream")) {
  bus_->subscribe("$JS.API.STREAM.*." + subjects_.event_stream()).value();
  bus_->subscribe(subjects_.event_logs()).value();
}

void EventStream::set(State state) {
  state_ = state;
  state == State::kAway ? bus_->disconnect() : bus_->reconnect();
}

void EventStream::turn() {
  std::vector<Message> inbox;
  bus_->receive(inbox, 1000);
  for (const auto& message : inbox) {
    if (state_ == State::kSilent) continue;
    message.subject.starts_with("$JS.") ? answer_api(message) : take(message);
  }
}

void EventStream::answer_api(const Message& message) {
  std::string answer = R"({"type":"io.nats.jetstream.api.v1.stream_create_response"})";
  if (state_ == State::kElecting) {
    answer = refusal(10008, "JetStream system temporarily unavailable");
  } else {
    is_made_ = true;
  }
  static_cast<void>(bus_->publish({std::string(message.reply), {}, std::move(answer), {}}));
}

void EventStream::take(const Message& message) {
  if (!is_made_ || state_ == State::kElecting) return;
  const auto answer = [&](std::string body) {
    static_cast<void>(bus_->publish({std::string(message.reply), {}, std::move(body), {}}));
  };
  const auto id = header(message, "Nats-Msg-Id");
  const auto before = taken_.find(id);
  const auto now = clock_.now();
  if (before != taken_.end() && now - before->second < kDuplicateWindow) {
    return answer(R"({"stream":")" + subjects_.event_stream() + R"(","seq":1,"duplicate":true})");
  }
  const auto behind = header(message, "Nats-Expected-Last-Msg-Id");
  if (!behind.empty() && behind != last_) return answer(refusal(10070, "wrong last msg ID: " + last_));
  taken_[id] = now;
  last_ = id;
  answer(R"({"stream":")" + subjects_.event_stream() + R"(","seq":1})");
  auto subject = subjects_.events();  // ends in a wildcard
  const auto logs = subjects_.event_logs();
  subject.replace(subject.size() - 1, 1, message.subject.substr(logs.size() - 1));
  static_cast<void>(bus_->publish({std::move(subject), {}, std::string(message.data), {}}));
}

}  // namespace muster::sim
