// Events on their way out: plainly, or to a JetStream stream that acknowledges them.
#include <algorithm>

#include "support/publisher_fixture.h"

using namespace muster;
using Catch::Contains;
using nlohmann::json;
using test::PublisherFixture;

namespace {

std::size_t size_of(const Outgoing& message) {
  auto size = message.data.size();
  for (const auto& one : message.headers) size += one.name.size() + one.value.size() + 4;
  return size;
}

}  // namespace

TEST_CASE_METHOD(PublisherFixture, "it asks for a stream that republishes, with the limits of the configuration") {
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].subject == "$JS.API.STREAM.CREATE.MUSTER_EVENTS");
  CHECK(requests[0].reply == "_INBOX_x.stream.1");
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
  CHECK(event["id"] == store->fleet().value + "-1");  // by it an observer knows what comes twice, from any release
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
  for (const auto& message : all) CHECK(size_of(message) <= 64 * 1024);
}

TEST_CASE_METHOD(PublisherFixture, "a message holds no more than the server takes, and its events are all told") {
  max_payload = 4096;
  no_stream();
  for (int i = 0; i < 100; ++i) emit("resource.changed", "NS", json{{"text", std::string(i % 10 * 100, 'x')}}.dump());
  emit("resource.changed", "NS", json{{"text", std::string(4000, 'x')}}.dump());
  emit("resource.changed");
  std::vector<Outgoing> all;
  for (auto more = pump(); !more.empty(); more = pump()) all.insert(all.end(), more.begin(), more.end());
  CHECK(sequences(all) == up_to(102));
  for (const auto& message : all) CHECK(size_of(message) <= max_payload);
  std::vector<json> events;
  for (const auto& message : all) {
    for (auto& event : events_in(message)) events.push_back(std::move(event));
  }
  CHECK(events.at(99)["data"]["text"].get<std::string>().size() == 900);
  CHECK(events.at(100)["data"] == json{{"left_out_bytes", 4011}});
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

TEST_CASE_METHOD(PublisherFixture, "without a stream a long backlog goes out in portions, without a pause") {
  for (int i = 0; i < 1000; ++i) emit(i % 2 == 0 ? "resource.discovered" : "resource.changed");
  no_stream();
  std::vector<Outgoing> all;
  while (all.size() < 1000) {
    const auto portion = pump();
    REQUIRE(portion.size() <= 64);
    REQUIRE_FALSE(portion.empty());
    all.insert(all.end(), portion.begin(), portion.end());
    REQUIRE(publisher->published() == all.size());
    REQUIRE((publisher->next_due() <= clock.now()) == (all.size() < 1000));
  }
  CHECK(sequences(all) == up_to(1000));
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
  const std::string in_use = R"({"error":{"code":400,"err_code":10058,"description":"stream name already in use"}})";
  answer("stream", in_use);
  emit("resource.discovered");
  CHECK(pump().empty());
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].subject == "$JS.API.STREAM.INFO.MUSTER_EVENTS");
  SECTION("what may not be looked at is done without, whatever the reason") {
    answer("stream", in_use);
    CHECK(sequences(pump()) == up_to(1));
    CHECK_FALSE(publisher->streaming());
    CHECK(requests.size() == 2);
    return;
  }
  answer("stream", R"({"config":{"name":"MUSTER_EVENTS","subjects":["muster.eventlog.>"],"max_bytes":1}})");
  CHECK(pump().empty());
  REQUIRE(requests.size() == 3);
  CHECK(requests[2].subject == "$JS.API.STREAM.UPDATE.MUSTER_EVENTS");
  answer("stream", GENERATE_COPY(in_use, std::string(R"({"error":{"code":500,"err_code":10052,"description":"no"}})")));
  CHECK(publisher->streaming());
  CHECK(pump().size() == 1);
  CHECK(requests.size() == 3);
}

TEST_CASE_METHOD(PublisherFixture, "whatever is answered on its inbox is never fatal") {
  emit("resource.discovered");
  for (const auto* body : {"", "1", "[]", "null", R"({"error":3})", R"({"error":{"err_code":"x"}})",
                           R"({"error":{"err_code":10058,"description":[1]}})", R"({"config":7})", R"({"config":[1]})",
                           R"({"config":{"subjects":{}}})", R"({"error":null})"}) {
    CAPTURE(body);
    for (const auto* what : {"stream", "ack.1-1", "ack.", "other"}) {
      make();  // a question counts with its first answer
      CHECK_NOTHROW(answer(what, body));
    }
    make();
    answer("stream", R"({"error":{"err_code":10058}})");
    pump();  // asks what the stream is
    CHECK_NOTHROW(answer("stream", body));
    CHECK(publisher->published() == 0);
    make();
    stream_is_there();
    REQUIRE(pump().size() == 1);
    CHECK_NOTHROW(answer("ack.1-1", body));
  }
}

TEST_CASE_METHOD(PublisherFixture, "a stream of that name that holds something else is left alone") {
  const auto* has = GENERATE(R"({"name":"MUSTER_EVENTS","subjects":["Muster.eventlog.>"]})", R"({})", R"(7)", R"("x")",
                             R"(["muster.eventlog.>"])");
  CAPTURE(has);
  answer("stream", R"({"error":{"code":400,"err_code":10058,"description":"stream name already in use"}})");
  emit("resource.discovered");
  pump();
  CHECK_NOTHROW(answer("stream", R"({"config":)" + std::string(has) + "}"));
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
  answer("ack.1-1", "", true);
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
  for (const auto* what : {"", "ack", "ack.", "ack.x", "ack.1", "ack.1-", "ack.1-2", "nonsense"}) {
    answer(what, "{}");
    answer(what, "\xff");
  }
  CHECK(publisher->published() == 0);
  acknowledge(sent[0]);
  CHECK(publisher->published() == 1);
}
