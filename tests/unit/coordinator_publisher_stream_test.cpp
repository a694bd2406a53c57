// What a stream of events has: each once, in order, whatever happens to it or to the coordinator.
#include "support/publisher_fixture.h"

using namespace muster;
using test::kBehind;
using test::PublisherFixture;

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

TEST_CASE_METHOD(PublisherFixture, "an answer to what was sent before is none to the same events in other portions") {
  stream_is_there();
  std::vector<Outgoing> sent;
  for (int i = 0; i < 4; ++i) {
    emit("a.a");
    for (auto& message : pump()) sent.push_back(std::move(message));
  }
  REQUIRE(sent.size() == 4);
  acknowledge(sent[0]);
  refuse(sent[1], header(sent[1], "Nats-Msg-Id"));  // it was taken, and that was not heard
  const auto together = pump();
  REQUIRE(sequences(together) == up_to(4, 3));
  refuse(sent[3], header(sent[0], "Nats-Msg-Id"));  // from the time when the stream had one
  CHECK(pump().empty());
  SECTION("the stream takes what was sent before, and they follow") {
    refuse(together[0], header(sent[2], "Nats-Msg-Id"));
    const auto rest = pump();
    CHECK(sequences(rest) == up_to(4, 4));
    CHECK(header(rest.at(0), kBehind) == header(sent[2], "Nats-Msg-Id"));
  }
  SECTION("the stream takes them as they are now") {
    acknowledge(together[0]);
    CHECK(publisher->published() == 4);
  }
}

TEST_CASE_METHOD(PublisherFixture, "an answer to what was sent before the store failed is none to more than that") {
  stream_is_there();
  emit("a.a");
  const auto before = pump();
  REQUIRE(sequences(before) == up_to(1));
  emit("a.a");
  make();
  stream_is_there();
  const auto after = pump();
  REQUIRE(sequences(after) == up_to(2));
  acknowledge(before[0]);
  CHECK(publisher->published() == 0);
  acknowledge(after[0]);
  CHECK(publisher->published() == 2);
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
    clock.advance(std::chrono::seconds(2));
    CHECK(pump().empty());
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
  SECTION("it is no better: nothing waits for it for long") {
    last.reset();
    CHECK(pump().size() == 1);
    clock.advance(std::chrono::seconds(6));
    CHECK(sequences(pump()) == up_to(2, 2));
    CHECK_FALSE(publisher->streaming());
    clock.advance(std::chrono::seconds(29));
    pump();
    CHECK(requests.size() == asked + 1);
  }
  SECTION("it is: it has as long as before") {
    const auto back = pump();
    REQUIRE(back.size() == 1);
    CHECK(back[0].subject == subjects.event_log("NS", "b.b"));
    CHECK(header(back[0], kBehind).empty());
    acknowledge(back[0]);
    emit("c.c");
    pump();
    clock.advance(std::chrono::seconds(50));
    pump();
    CHECK(publisher->streaming());
  }
}

TEST_CASE_METHOD(PublisherFixture, "a question counts with its first answer") {
  answer("stream", R"({"error":{"code":400,"err_code":10058,"description":"stream name already in use"}})");
  emit("a.a");
  pump();
  REQUIRE(requests.size() == 2);
  answer("stream.1", R"({"type":"io.nats.jetstream.api.v1.stream_create_response"})");  // of another server, late
  CHECK_FALSE(publisher->streaming());
  stream_is_there();  // holds nothing that is known of
  CHECK_FALSE(publisher->streaming());
}

TEST_CASE_METHOD(PublisherFixture, "what the stream has refused to store is not in it, whatever it says") {
  stream_is_there();
  emit("a.a");
  acknowledge(pump().at(0));
  emit("b.b");
  const auto sent = pump().at(0);
  answer(sent.reply.substr(std::string("_INBOX_x.").size()),
         R"({"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}})");
  clock.advance(std::chrono::seconds(2));
  pump();
  stream_is_there();
  CHECK(pump().at(0) == sent);
  refuse(sent, header(sent, "Nats-Msg-Id"));
  const auto again = pump();
  REQUIRE(again.size() == 1);
  CHECK(sequences(again) == up_to(2, 2));
  CHECK(publisher->published() == 1);
}

TEST_CASE_METHOD(PublisherFixture, "what is no acknowledgement acknowledges nothing") {
  stream_is_there();
  emit("a.a");
  const auto sent = pump().at(0);
  answer(sent.reply.substr(std::string("_INBOX_x.").size()), GENERATE("", "+OK", "7", "[]"));
  CHECK(publisher->published() == 0);
  clock.advance(std::chrono::seconds(2));
  pump();
  stream_is_there();
  CHECK(pump().at(0) == sent);
}

TEST_CASE_METHOD(PublisherFixture, "what another stream has of the same subjects is not published") {
  stream_is_there();
  emit("a.a");
  const auto sent = pump().at(0);
  const std::string said =
      GENERATE(R"({"stream":"ARCHIVE","seq":7})",
               R"({"stream":"ARCHIVE","seq":0,"error":{"code":400,"err_code":10070,"description":"wrong"}})");
  const auto said_by_other = [&] { answer(sent.reply.substr(std::string("_INBOX_x.").size()), said); };
  said_by_other();
  CHECK(publisher->published() == 0);
  SECTION("the fleet's has it, too") {
    acknowledge(sent);
    CHECK(publisher->published() == 1);
  }
  SECTION("the fleet's is no more, and that one took its place") {
    for (int seconds = 0; seconds < 66; ++seconds) {
      clock.advance(std::chrono::seconds(1));
      const auto again = pump();
      if (!again.empty() && !publisher->streaming()) {
        CHECK(again.at(0).subject == "muster.event.NS.a.a");
        break;
      }
      if (!again.empty()) said_by_other();
    }
    CHECK_FALSE(publisher->streaming());
    CHECK(publisher->published() == 1);
  }
}

TEST_CASE_METHOD(PublisherFixture, "a stream that refuses after a long time has as long to be there again") {
  stream_is_there();
  clock.advance(std::chrono::seconds(100));
  emit("a.a");
  const auto sent = pump().at(0);
  answer(sent.reply.substr(std::string("_INBOX_x.").size()),
         R"({"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}})");
  for (int seconds = 0; seconds < 50; ++seconds) {
    CHECK(pump().empty());
    clock.advance(std::chrono::seconds(1));
  }
  stream_is_there();
  CHECK(pump().at(0) == sent);
}

TEST_CASE_METHOD(PublisherFixture, "a stream that was there and cannot be made again is done without at once") {
  stream_is_there();
  emit("a.a");
  const auto sent = pump().at(0);
  answer(sent.reply.substr(std::string("_INBOX_x.").size()), "", true);
  clock.advance(std::chrono::seconds(2));
  CHECK(pump().empty());
  answer("stream", R"({"error":{"code":500,"err_code":10047,"description":"insufficient storage"}})");
  CHECK(pump().at(0).subject == "muster.event.NS.a.a");
}

TEST_CASE_METHOD(PublisherFixture, "where there is no stream it is looked for twice a minute, answered or not") {
  no_stream();
  const auto asked = requests.size();
  for (int seconds = 0; seconds < 62; ++seconds) {
    pump();
    clock.advance(std::chrono::seconds(1));
  }
  CHECK(requests.size() == asked + 2);
}

TEST_CASE_METHOD(PublisherFixture, "a stream that refuses all is asked for every other second, and not for ever") {
  stream_is_there();
  emit("a.a");
  pump();
  for (int i = 0; i < 100 && publisher->streaming(); ++i) {
    answer("ack.1-1", R"({"error":{"code":503,"err_code":10047,"description":"insufficient storage"}})");
    pump();
    clock.advance(Millis(100));
    stream_is_there();
    pump();
  }
  CHECK(requests.size() < 10);
  clock.advance(std::chrono::minutes(1));
  answer("ack.1-1", R"({"error":{"code":503,"err_code":10047,"description":"insufficient storage"}})");
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
  answer("ack.2-2", "", true);
  clock.advance(std::chrono::seconds(61));
  CHECK(sequences(pump()) == up_to(2, 2));
  stream_is_there();
  last = header(first[0], "Nats-Msg-Id");
  emit("c.c");
  CHECK(sequences(pump()) == up_to(3, 3));
}

TEST_CASE_METHOD(PublisherFixture, "each time that the stream is slow it has as long as the first time") {
  const bool heard = GENERATE(true, false);
  stream_is_there();
  emit("a.a");
  acknowledge(pump().at(0));
  for (int times = 0; times < 3; ++times) {
    emit("a.a");
    REQUIRE(pump().size() == 1);
    clock.advance(std::chrono::seconds(40));
    const auto again = pump();
    REQUIRE(again.size() == 1);
    REQUIRE(publisher->streaming());
    if (heard) {
      acknowledge(again[0]);
    } else {
      refuse(again[0], header(again[0], "Nats-Msg-Id"));  // it was taken, and that was not heard
    }
  }
  CHECK(publisher->published() == 4);
}

TEST_CASE_METHOD(PublisherFixture, "where a former process has sent all that there is, nothing is sent") {
  stream_is_there();
  for (int i = 0; i < 3; ++i) emit("a.a");
  last = header(pump().at(0), "Nats-Msg-Id");
  make();
  stream_is_there();
  CHECK(pump().empty());
  CHECK(publisher->published() == 3);
}
