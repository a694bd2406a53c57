// Events on their way out: plainly, or to a JetStream stream that acknowledges them.
#include <algorithm>

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "coordinator/publisher.h"
#include "coordinator/sqlite_store.h"
#include "worker_sdk/testing/fake_clock.h"

using namespace muster;
using Catch::Contains;
using nlohmann::json;

namespace {

const std::string kBehind = "Nats-Expected-Last-Msg-Id";

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
    publisher->pump(clock.now(), effects);
    return drain();
  }
  std::vector<Outgoing> drain() {
    std::vector<Outgoing> events;
    for (auto& message : std::exchange(effects.at_once, {})) {
      (message.subject.starts_with("$JS.API.") ? requests : events).push_back(std::move(message));
    }
    return events;
  }
  void answer(const std::string& what, const std::string& body, bool no_responders = false) {
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
  std::vector<Outgoing> requests;                   // to the stream's API
  std::optional<std::string> last = std::string();  // id of what is last in the stream
  std::unique_ptr<EventLog> log_of_events;
  std::unique_ptr<Publisher> publisher;
};

}  // namespace

TEST_CASE_METHOD(PublisherFixture, "it asks for a stream that republishes, with the limits of the configuration") {
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].subject == "$JS.API.STREAM.CREATE.MUSTER_EVENTS");
  CHECK(requests[0].reply == "_INBOX_x.stream");
  const auto stream = json::parse(requests[0].data);
  CHECK(stream["name"] == "MUSTER_EVENTS");
  CHECK(stream["max_age"] == 7LL * 24 * 3600 * 1'000'000'000);
  CHECK(stream["max_bytes"] == 1 << 30);
  CHECK(stream["discard"] == "old");
  CHECK(stream["republish"]["dest"] == "muster.event.>");
}

TEST_CASE_METHOD(PublisherFixture,
                 "nothing goes out before it is known whether there is a stream, and nothing is lost") {
  emit("run.started");
  CHECK(pump().empty());
  no_stream();
  CHECK(sequences(pump()) == up_to(1));
}

TEST_CASE_METHOD(PublisherFixture, "a question that gets no answer is asked again") {
  clock.advance(std::chrono::seconds(10));
  CHECK(publisher->next_due() <= clock.now());
  pump();
  CHECK(requests.size() == 2);
}

TEST_CASE_METHOD(PublisherFixture, "one event is one CloudEvent") {
  no_stream();
  emit("resource.discovered", "NS", R"({"id":"r"})");
  const auto messages = pump();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].subject == "muster.event.NS.resource.discovered");
  CHECK_THAT(header(messages[0], "content-type"), !Contains("batch"));
  const auto event = json::parse(messages[0].data);
  CHECK(event["specversion"] == "1.0");
  CHECK(event["source"] == "muster/muster");
  CHECK(event["type"] == "muster.resource.discovered");
  CHECK(event["subject"] == "subject");
  CHECK(event["sequence"] == "1");
  CHECK(event["data"] == json{{"id", "r"}});
  CHECK_THAT(event["time"].get<std::string>(), Contains("T") && Contains("Z"));
  CHECK_FALSE(event["id"].get<std::string>().empty());
}

TEST_CASE_METHOD(PublisherFixture, "an event without a namespace has a dash in its subject") {
  no_stream();
  emit("run.started", "");
  CHECK(pump().at(0).subject == "muster.event.-.run.started");
}

TEST_CASE_METHOD(PublisherFixture, "consecutive events of one subject travel together, in order") {
  no_stream();
  for (int i = 0; i < 3; ++i) emit("resource.discovered");
  emit("resource.changed");
  emit("resource.discovered");
  emit("resource.discovered", "OTHER");
  const auto messages = pump();
  REQUIRE(messages.size() == 4);
  CHECK(header(messages[0], "content-type") == "application/cloudevents-batch+json");
  CHECK(events_in(messages[0]).size() == 3);
  CHECK(messages[1].subject == "muster.event.NS.resource.changed");
  CHECK(messages[3].subject == "muster.event.OTHER.resource.discovered");
  CHECK(sequences(messages) == up_to(6));
}

TEST_CASE_METHOD(PublisherFixture, "a message holds at most 64 KiB, headers and all") {
  no_stream();
  for (int i = 0; i < 500; ++i) emit("resource.changed", "NS", json{{"text", std::string(i % 7 * 1000, 'x')}}.dump());
  std::vector<Outgoing> all;
  for (auto more = pump(); !more.empty(); more = pump()) all.insert(all.end(), more.begin(), more.end());
  CHECK(sequences(all) == up_to(500));
  CHECK(all.size() < 100);
  for (const auto& message : all) {
    auto size = message.data.size();
    for (const auto& one : message.headers) size += one.name.size() + one.value.size() + 4;
    CHECK(size <= 64 * 1024);
  }
}

TEST_CASE_METHOD(PublisherFixture, "every event keeps its id, and every batch says which it is") {
  no_stream();
  for (int i = 0; i < 4; ++i) emit(i < 2 ? "resource.changed" : "resource.discovered");
  std::vector<std::string> ids, batches;
  for (const auto& message : pump()) {
    batches.push_back(header(message, "Nats-Msg-Id"));
    for (const auto& event : events_in(message)) ids.push_back(event["id"]);
  }
  REQUIRE(ids.size() == 4);
  std::ranges::sort(ids);
  CHECK(std::ranges::adjacent_find(ids) == ids.end());
  REQUIRE(batches.size() == 2);
  CHECK_FALSE(batches[0].empty());
  CHECK(batches[0] != batches[1]);
}

TEST_CASE_METHOD(PublisherFixture, "without a stream events go out once") {
  no_stream();
  for (int i = 0; i < 10; ++i) emit("run.progress", "");
  CHECK(sequences(pump()) == up_to(10));
  clock.advance(std::chrono::seconds(20));
  CHECK(pump().empty());
  CHECK(publisher->published() == 10);
  publisher->note_published();
  store->commit().value();
  make();
  no_stream();
  CHECK(pump().empty());
  emit("run.finished", "");
  CHECK(sequences(pump()) == up_to(11, 11));
}

TEST_CASE_METHOD(PublisherFixture, "with a stream events go to it, and count when it has them") {
  stream_is_there();
  CHECK(publisher->streaming());
  emit("resource.discovered");
  emit("resource.changed");
  const auto messages = pump();
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].subject == subjects.event_log("NS", "resource.discovered"));
  CHECK(messages[0].reply.starts_with("_INBOX_x."));
  CHECK_FALSE(header(messages[0], "Nats-Msg-Id").empty());
  CHECK(publisher->published() == 0);
  acknowledge(messages[1]);
  CHECK(publisher->published() == 0);  // the one before may be lost
  acknowledge(messages[0]);
  CHECK(publisher->published() == 2);
  acknowledge(messages[0]);
  CHECK(publisher->published() == 2);
  clock.advance(std::chrono::minutes(1));
  CHECK(pump().empty());
}

TEST_CASE_METHOD(PublisherFixture, "what is not acknowledged is sent again, as the same message") {
  stream_is_there();
  emit("resource.discovered");
  emit("resource.changed");
  const auto first = pump();
  const auto resent = publisher->resent();
  acknowledge(first[1]);
  clock.advance(Millis(1000));
  CHECK(pump().empty());
  clock.advance(std::chrono::seconds(9));
  CHECK(publisher->next_due() <= clock.now());
  const auto again = pump();
  REQUIRE(again.size() == 1);
  CHECK(again[0] == first[0]);
  CHECK(pump().empty());
  acknowledge(again[0]);
  CHECK(publisher->published() == 2);
  CHECK(publisher->resent() == resent + 1);
}

TEST_CASE_METHOD(PublisherFixture, "what a former process had not seen acknowledged goes out again with the same ids") {
  stream_is_there();
  for (int i = 0; i < 3; ++i) emit("resource.discovered");
  const auto first = pump();
  make();
  stream_is_there();
  const auto again = pump();
  REQUIRE(again.size() == 1);
  CHECK(header(again[0], "Nats-Msg-Id") == header(first[0], "Nats-Msg-Id"));
  CHECK(sequences(again) == up_to(3));
}

TEST_CASE_METHOD(PublisherFixture, "a stream that does not answer stops the flow at a bound") {
  stream_is_there();
  for (int i = 0; i < 1000; ++i) emit(i % 2 == 0 ? "resource.discovered" : "resource.changed");
  std::size_t sent = 0;
  for (int i = 0; i < 20; ++i) sent += pump().size();
  CHECK(sent >= 10);
  CHECK(sent <= 200);
}

TEST_CASE_METHOD(PublisherFixture, "a long backlog goes out completely and in order") {
  stream_is_there();
  for (int i = 0; i < 1000; ++i) emit(i % 3 == 0 ? "resource.discovered" : "resource.changed");
  std::vector<Outgoing> all;
  for (auto more = pump(); !more.empty(); more = pump()) {
    for (const auto& message : more) acknowledge(message);
    all.insert(all.end(), more.begin(), more.end());
  }
  CHECK(sequences(all) == up_to(1000));
  CHECK(publisher->published() == 1000);
}

TEST_CASE_METHOD(PublisherFixture, "what nobody takes for long is not kept in memory, and goes out all the same") {
  const std::string large(50'000, 'x');
  std::uint64_t end = 0;
  for (int i = 0; i < 500; ++i) end = emit("class.a", "NS", '"' + large + '"');
  stream_is_there();
  std::vector<std::uint64_t> out;
  while (out.size() < end) {
    const auto messages = pump();
    REQUIRE_FALSE(messages.empty());
    for (const auto sequence : sequences(messages)) out.push_back(sequence);
    for (const auto& message : messages) acknowledge(message);
    if (out.size() == 100) end = emit("class.b");
  }
  CHECK(out == up_to(end));
}

TEST_CASE_METHOD(PublisherFixture, "after a disconnection everything on its way is sent again") {
  stream_is_there();
  emit("resource.discovered");
  const auto first = pump();
  publisher->reconnect(clock.now());
  const auto again = pump();
  REQUIRE(again.size() == 1);
  CHECK(again[0] == first[0]);
}

TEST_CASE_METHOD(PublisherFixture, "a stream with other limits is updated, and serves as it is when that is refused") {
  answer("stream", R"({"error":{"code":400,"err_code":10058,"description":"stream name already in use"}})");
  emit("resource.discovered");
  CHECK(pump().empty());
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].subject == "$JS.API.STREAM.INFO.MUSTER_EVENTS");
  answer("stream", R"({"config":{"name":"MUSTER_EVENTS","subjects":["muster.eventlog.>"],"max_bytes":1}})");
  CHECK(pump().empty());
  REQUIRE(requests.size() == 3);
  CHECK(requests[2].subject == "$JS.API.STREAM.UPDATE.MUSTER_EVENTS");
  answer("stream", R"({"error":{"code":500,"err_code":10052,"description":"no"}})");
  CHECK(publisher->streaming());
  CHECK(pump().size() == 1);
}

TEST_CASE_METHOD(PublisherFixture, "whatever is answered on its inbox is never fatal") {
  for (const auto* body :
       {"", "1", "[]", "null", R"({"error":3})", R"({"error":{"err_code":"x"}})",
        R"({"error":{"err_code":10058,"description":[1]}})", R"({"config":7})", R"({"error":null})"}) {
    for (const auto* what : {"stream", "ack.1", "ack.", "other"}) answer(what, body);
    pump();
  }
  CHECK(publisher->published() == 0);
}

TEST_CASE_METHOD(PublisherFixture, "a stream of that name that holds something else is left alone") {
  answer("stream", R"({"error":{"code":400,"err_code":10058,"description":"stream name already in use"}})");
  emit("resource.discovered");
  pump();
  answer("stream", R"({"config":{"name":"MUSTER_EVENTS","subjects":["Muster.eventlog.>"]}})");
  CHECK_FALSE(publisher->streaming());
  CHECK(pump().size() == 1);  // without a stream
  CHECK(std::ranges::none_of(requests,
                             [](const Outgoing& one) { return one.subject.find("UPDATE") != one.subject.npos; }));
}

TEST_CASE_METHOD(PublisherFixture, "a stream that goes away is asked for again, and gets what it did not take") {
  stream_is_there();
  emit("resource.discovered");
  const auto first = pump();
  clock.advance(std::chrono::seconds(2));
  answer("ack.1", "", true);
  emit("resource.changed");
  CHECK(pump().empty());  // what comes next waits, too, until it is known where to
  REQUIRE(requests.size() == 2);
  SECTION("and is there again") {
    stream_is_there();
    const auto again = pump();
    REQUIRE(again.size() == 2);
    CHECK(again[0] == first[0]);
    CHECK(again[1].subject == subjects.event_log("NS", "resource.changed"));
  }
  SECTION("and stays away: then they go out plainly, after a while") {
    no_stream();
    CHECK(pump().empty());
    CHECK(publisher->next_due() <= clock.now() + std::chrono::seconds(5));
    clock.advance(std::chrono::minutes(1));
    const auto plainly = pump();
    REQUIRE(plainly.size() == 2);
    CHECK(plainly[0].subject == "muster.event.NS.resource.discovered");
    CHECK(publisher->published() == 2);
  }
}

TEST_CASE_METHOD(PublisherFixture, "a JetStream that comes later is found") {
  no_stream();
  emit("run.started");
  CHECK(pump().size() == 1);
  clock.advance(std::chrono::minutes(2));
  emit("run.finished");
  pump();
  CHECK(requests.size() >= 2);
  stream_is_there();
  emit("run.started");
  const auto messages = pump();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].subject == subjects.event_log("NS", "run.started"));
}

TEST_CASE_METHOD(PublisherFixture, "answers that make no sense are no acknowledgement and do no harm") {
  stream_is_there();
  emit("resource.discovered");
  const auto sent = pump();
  for (const auto* what : {"", "ack", "ack.", "ack.x", "ack.99", "ack.18446744073709551616", "nonsense"}) {
    answer(what, "{}");
    answer(what, "\xff");
  }
  CHECK(publisher->published() == 0);
  acknowledge(sent[0]);
  CHECK(publisher->published() == 1);
}

TEST_CASE_METHOD(PublisherFixture, "the stream takes a batch only right behind the one before") {
  stream_is_there();
  for (const auto* what : {"a.a", "b.b", "c.c"}) emit(what);
  const auto sent = pump();
  REQUIRE(sent.size() == 3);
  CHECK(header(sent[0], kBehind).empty());  // whatever is in the stream
  CHECK(header(sent[1], kBehind) == header(sent[0], "Nats-Msg-Id"));
  CHECK(header(sent[2], kBehind) == header(sent[1], "Nats-Msg-Id"));
  acknowledge(sent[0]);
  SECTION("where one is lost, those that follow are refused, and come after it once more") {
    refuse(sent[2]);
    CHECK(pump().empty());
    CHECK(publisher->streaming());
    clock.advance(std::chrono::seconds(6));
    const auto again = pump();
    REQUIRE(again.size() == 2);
    CHECK(again[0] == sent[1]);
    CHECK(again[1] == sent[2]);
    acknowledge(again[0]);
    acknowledge(again[1]);
    CHECK(publisher->published() == 3);
  }
  SECTION("what came too early follows as soon as the one before is there") {
    refuse(sent[2]);
    acknowledge(sent[1]);
    const auto again = pump();
    REQUIRE(again.size() == 1);
    CHECK(again[0] == sent[2]);
    CHECK(pump().empty());
  }
  SECTION("where the stream is another, the first is taken as it is") {
    refuse(sent[1]);
    const auto again = pump();
    REQUIRE(again.size() == 2);
    CHECK(header(again[0], kBehind).empty());
    CHECK(header(again[0], "Nats-Msg-Id") == header(sent[1], "Nats-Msg-Id"));
    CHECK(again[1] == sent[2]);
    refuse(again[0]);  // makes no sense
    CHECK(pump().empty());
  }
  SECTION("what comes later follows what was acknowledged") {
    for (const auto& message : sent) acknowledge(message);
    emit("d.d");
    CHECK(header(pump().at(0), kBehind) == header(sent[2], "Nats-Msg-Id"));
  }
}

TEST_CASE_METHOD(PublisherFixture, "JetStream that elects a leader is waited for, a while") {
  const auto* const away = R"({"error":{"code":503,"err_code":10008,"description":"temporarily unavailable"}})";
  emit("a.a");
  answer("stream", away);
  CHECK(pump().empty());
  clock.advance(std::chrono::seconds(30));
  CHECK(pump().empty());
  answer("stream", away);
  SECTION("and is there") {
    stream_is_there();
    CHECK(pump().at(0).subject == subjects.event_log("NS", "a.a"));
  }
  SECTION("and stays away") {
    clock.advance(std::chrono::seconds(31));
    CHECK(pump().at(0).subject == "muster.event.NS.a.a");
    emit("b.b");
    answer("stream", away);
    CHECK(pump().size() == 1);
  }
}

TEST_CASE_METHOD(PublisherFixture, "where nobody answers for JetStream, events go out all the same") {
  emit("a.a");
  CHECK(pump().empty());
  clock.advance(std::chrono::seconds(61));
  CHECK(pump().at(0).subject == "muster.event.NS.a.a");
}

TEST_CASE_METHOD(PublisherFixture, "a stream that does not answer for long is done without, and looked for again") {
  stream_is_there();
  emit("a.a");
  CHECK(pump().size() == 1);
  std::vector<Outgoing> plainly;
  for (int seconds = 0; seconds < 120 && publisher->streaming(); ++seconds) {
    clock.advance(std::chrono::seconds(1));
    plainly = pump();
  }
  REQUIRE(plainly.size() == 1);
  CHECK(plainly[0].subject == "muster.event.NS.a.a");
  CHECK(publisher->published() == 1);
  const auto asked = requests.size();
  clock.advance(std::chrono::seconds(31));
  pump();
  CHECK(requests.size() == asked + 1);
  stream_is_there();
  emit("b.b");
  const auto back = pump();
  REQUIRE(back.size() == 1);
  CHECK(back[0].subject == subjects.event_log("NS", "b.b"));
  CHECK(header(back[0], kBehind).empty());
  SECTION("it is no better: nothing waits for it for long") {
    clock.advance(std::chrono::seconds(6));
    CHECK(sequences(pump()) == up_to(2, 2));
    CHECK_FALSE(publisher->streaming());
  }
  SECTION("it is: it has as long as before") {
    acknowledge(back[0]);
    emit("c.c");
    pump();
    clock.advance(std::chrono::seconds(50));
    pump();
    CHECK(publisher->streaming());
  }
}

TEST_CASE_METHOD(PublisherFixture, "a stream that refuses all is asked for every other second, and not for ever") {
  stream_is_there();
  emit("a.a");
  pump();
  for (int i = 0; i < 100 && publisher->streaming(); ++i) {
    answer("ack.1", R"({"error":{"code":503,"err_code":10047,"description":"insufficient storage"}})");
    pump();
    clock.advance(Millis(100));
    stream_is_there();
    pump();
  }
  CHECK(requests.size() < 10);
  clock.advance(std::chrono::minutes(1));
  answer("ack.1", R"({"error":{"code":503,"err_code":10047,"description":"insufficient storage"}})");
  CHECK(sequences(pump()) == up_to(1));
  CHECK(publisher->published() == 1);
}

TEST_CASE_METHOD(PublisherFixture, "what a former process has sent does not come twice") {
  stream_is_there();
  for (int i = 0; i < 3; ++i) emit("a.a");
  const auto first = pump();
  REQUIRE(first.size() == 1);
  const auto id = header(first[0], "Nats-Msg-Id");
  emit("a.a");
  make();
  stream_is_there();
  SECTION("all that it has sent is there") {
    last = id;
    const auto rest = pump();
    CHECK(sequences(rest) == up_to(4, 4));
    CHECK(header(rest[0], kBehind) == id);
    CHECK(publisher->published() == 3);
  }
  SECTION("what is last there is of another fleet, older, newer than all, or cannot be read: all is sent") {
    for (const auto* other : {"", "x", "other-1-3", "-", "-1"}) {
      last = std::string(other) == "-1" ? id.substr(0, id.find('-')) + "-1-x" : other;
      CAPTURE(*last);
      make();
      stream_is_there();
      const auto all = pump();
      CHECK(sequences(all) == up_to(4));
      CHECK(header(all[0], kBehind).empty());
    }
    last = id.substr(0, id.find('-')) + "-1-99";
    make();
    stream_is_there();
    CHECK(sequences(pump()) == up_to(4));
  }
  SECTION("nothing else goes out until that is known") {
    last.reset();
    emit("b.b");
    CHECK(pump().size() == 1);
    CHECK(pump().empty());
    clock.advance(std::chrono::seconds(6));
    CHECK(pump().size() == 1);
  }
}

TEST_CASE_METHOD(PublisherFixture, "what went out plainly while the stream was away does not come again") {
  stream_is_there();
  emit("a.a");
  const auto first = pump();
  acknowledge(first[0]);
  emit("b.b");
  pump();
  answer("ack.2", "", true);
  clock.advance(std::chrono::seconds(61));
  CHECK(sequences(pump()) == up_to(2, 2));
  stream_is_there();
  last = header(first[0], "Nats-Msg-Id");
  emit("c.c");
  CHECK(sequences(pump()) == up_to(3, 3));
}
