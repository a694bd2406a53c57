#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/publisher.h"
#include "coordinator/sqlite_store.h"
#include "worker_sdk/testing/fake_clock.h"

namespace muster::test {

using nlohmann::json;

inline const std::string kBehind = "Nats-Expected-Last-Msg-Id";

/// A publisher over a store, and the test as the bus and its stream.
struct PublisherFixture {
  PublisherFixture() { make(); }

  void make() {
    log_of_events = std::make_unique<EventLog>(*store, clock);
    publisher = std::make_unique<Publisher>(config, subjects, *store, *log_of_events, "_INBOX_x", log);
    publisher->start(clock.now(), effects);
    drain();
  }
  std::uint64_t emit(const std::string& what, const std::string& ns = "NS", const std::string& data = "{}") {
    log_of_events->emit(ns, what, "subject", data);
    return store->last_sequence().value();
  }
  /// What is published now, requests to the stream's API apart. Where it is asked what is last in the stream, that is
  /// answered: `last`.
  std::vector<Outgoing> pump() {
    auto messages = publish();
    if (messages.empty() || header(messages[0], kBehind) != "-" || !last) return messages;
    CHECK(messages.size() == 1);
    refuse(messages[0], *last);
    return publish();
  }
  std::vector<Outgoing> publish() {
    store->commit().value();
    publisher->pump(clock.now(), effects, max_payload);
    return drain();
  }
  std::vector<Outgoing> drain() {
    std::vector<Outgoing> events;
    for (auto& message : std::exchange(effects.at_once, {})) {
      (message.subject.starts_with("$JS.API.") ? requests : events).push_back(std::move(message));
    }
    return events;
  }
  void answer(std::string what, const std::string& body, bool no_responders = false) {
    if (what == "stream") what = requests.back().reply.substr(std::string("_INBOX_x.").size());
    Message message;
    message.data = body;
    message.no_responders = no_responders;
    publisher->on_reply(what, message, clock.now());
  }
  void acknowledge(const Outgoing& message) {
    answer(message.reply.substr(std::string("_INBOX_x.").size()), R"({"stream":"MUSTER_EVENTS","seq":1})");
  }
  /// As not being right behind the one before.
  void refuse(const Outgoing& message, const std::string& last_is = "x") {
    answer(
        message.reply.substr(std::string("_INBOX_x.").size()),
        json{{"error", {{"code", 400}, {"err_code", 10070}, {"description", "wrong last msg ID: " + last_is}}}}.dump());
  }
  void stream_is_there() { answer("stream", R"({"type":"io.nats.jetstream.api.v1.stream_create_response"})"); }
  void no_stream() { answer("stream", "", true); }

  static std::string header(const Outgoing& message, const std::string& name) {
    for (const auto& one : message.headers) {
      if (one.name == name) return one.value;
    }
    return {};
  }
  static std::vector<json> events_in(const Outgoing& message) {
    const auto body = json::parse(message.data);
    return body.is_array() ? body.get<std::vector<json>>() : std::vector<json>{body};
  }
  static std::vector<std::uint64_t> sequences(const std::vector<Outgoing>& messages) {
    std::vector<std::uint64_t> all;
    for (const auto& message : messages) {
      for (const auto& event : events_in(message)) all.push_back(std::stoull(event.at("sequence").get<std::string>()));
    }
    return all;
  }
  static std::vector<std::uint64_t> up_to(std::uint64_t last, std::uint64_t first = 1) {
    std::vector<std::uint64_t> all;
    for (; first <= last; ++first) all.push_back(first);
    return all;
  }

  Config config;
  const Subjects subjects{"muster"};
  FakeClock clock;
  SeededRandom random{1};
  spdlog::logger log{"test", std::make_shared<spdlog::sinks::null_sink_st>()};
  std::unique_ptr<Store> store = std::move(open_sqlite_store(":memory:", clock, random).value());
  Effects effects;
  std::size_t max_payload = 1 << 20;
  std::vector<Outgoing> requests;                   // to the stream's API
  std::optional<std::string> last = std::string();  // id of what is last in the stream
  std::unique_ptr<EventLog> log_of_events;
  std::unique_ptr<Publisher> publisher;
};

}  // namespace muster::test
