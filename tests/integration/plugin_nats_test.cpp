#include <catch2/catch.hpp>
#include <future>
#include <map>
#include <thread>

#include "integration/plugin_nats_target.h"
#include "support/silent_nats.h"

using namespace muster;
using test::Client;
using test::kConsumer;
using test::kKeyValue;
using test::kStream;
using test::Nats;

namespace {

std::optional<Parent> below(const std::string& stream) {
  return Parent{kStream, stream, "{}"};
}

Json object(const Item& item) {
  return Json::parse(item.properties);
}

/// `items` by id, once each.
std::map<std::string, Item> by_id(const std::vector<Item>& items) {
  std::map<std::string, Item> all;
  for (const auto& item : items) {
    INFO(item.native_id);
    CHECK(all.emplace(item.native_id, item).second);
  }
  return all;
}

/// Thirty streams with every kind of setting, some of which hold buckets.
void make_streams(Client& client) {
  client.stream({{"name", "A-b_c"}, {"subjects", {"a.*.>", "b"}}, {"description", "with \"quotes\" & <tags>"}});
  client.stream({{"name", "größe"}, {"subjects", {"größe.>"}}, {"storage", "memory"}, {"max_age", 60'000'000'000}});
  client.stream({{"name", "work"}, {"subjects", {"work"}}, {"retention", "workqueue"}, {"discard", "new"}});
  client.stream(
      {{"name", "interest"}, {"subjects", {"i"}}, {"retention", "interest"}, {"max_msgs", 5}, {"max_bytes", 4096}});
  client.stream({{"name", "mirror"}, {"mirror", {{"name", "A-b_c"}}}});
  client.stream(
      {{"name", "sources"}, {"sources", {{{"name", "A-b_c"}}, {{"name", "work"}, {"filter_subject", "work"}}}}});
  client.stream({{"name", "republish"}, {"subjects", {"r.>"}}, {"republish", {{"src", "r.>"}, {"dest", "again.r.>"}}}});
  client.stream({{"name", "sealed"}, {"subjects", {"s"}}, {"deny_delete", true}, {"deny_purge", true}});
  client.stream({{"name", "$lead"}, {"subjects", {"lead"}}, {"no_ack", true}, {"max_msg_size", 100}});
  client.stream({{"name", std::string(200, 'n')}, {"subjects", {"long"}}});
  client.stream({{"name", "OBJ_files"}, {"subjects", {"$O.files.C.>", "$O.files.M.>"}}});
  for (int i = 0; i < 5; ++i) {
    const auto bucket = "bucket-" + std::to_string(i);
    client.stream({{"name", "KV_" + bucket},
                   {"subjects", {"$KV." + bucket + ".>"}},
                   {"max_msgs_per_subject", i + 1},
                   {"allow_rollup_hdrs", true},
                   {"discard", "new"},
                   {"storage", "memory"}});
  }
  for (int i = 16; i < 30; ++i) {
    client.stream(
        {{"name", "plain" + std::to_string(i)}, {"subjects", {"plain." + std::to_string(i)}}, {"storage", "memory"}});
  }
}

}  // namespace

TEST_CASE("nats: streams and buckets are what the server says, at every page size") {
  Nats nats;
  Client client(nats.server.url());
  make_streams(client);
  const auto infos = client.infos("STREAM.LIST", "streams");
  REQUIRE(infos.size() == 30);

  for (const std::uint32_t page_size : {1, 2, 100}) {
    INFO("page size " << page_size);
    const auto streams = by_id(nats.list(kStream, std::nullopt, page_size));
    CHECK(streams.size() == infos.size());
    const auto buckets = by_id(nats.list(kKeyValue, std::nullopt, page_size));
    CHECK(buckets.size() == 5);
    for (const auto& info : infos) {
      const std::string name = info["config"]["name"];
      INFO(name);
      const Item& item = streams.at(name);
      CHECK(object(item) == info["config"]);
      CHECK(item.uid == name + "@" + info["created"].get<std::string>());
      if (name.starts_with("KV_")) {
        auto expected = info["config"];
        expected["bucket"] = name.substr(3);
        CHECK(object(buckets.at(name.substr(3))) == expected);
      }
      CHECK(std::get<Item>(nats.read(kStream, name)) == item);
    }
    for (const auto& [id, item] : buckets) CHECK(std::get<Item>(nats.read(kKeyValue, id)) == item);
  }
}

TEST_CASE("nats: consumers are what the server says, durable ones and others") {
  Nats nats;
  Client client(nats.server.url());
  client.stream({{"name", "S"}, {"subjects", {"s.>"}}});
  client.stream({{"name", "empty"}, {"subjects", {"e"}}});
  client.durable("S", {{"durable_name", "pull"}, {"ack_policy", "explicit"}, {"filter_subject", "s.one"}});
  client.durable(
      "S", {{"durable_name", "push"}, {"deliver_subject", "to.me"}, {"deliver_group", "g"}, {"ack_policy", "all"}});
  client.durable("S", {{"durable_name", "größe"},
                       {"ack_policy", "explicit"},
                       {"backoff", {1'000'000'000, 5'000'000'000}},
                       {"max_deliver", 3}});
  const auto lone = client.ephemeral("S", {{"ack_policy", "none"}});

  const auto infos = client.infos("CONSUMER.LIST.S", "consumers");
  REQUIRE(infos.size() == 4);
  for (const std::uint32_t page_size : {1, 2, 100}) {
    INFO("page size " << page_size);
    const auto consumers = by_id(nats.list(kConsumer, below("S"), page_size));
    CHECK(consumers.size() == infos.size());
    for (const auto& info : infos) {
      const std::string name = info["name"];
      INFO(name);
      auto expected = info["config"];
      expected["stream"] = "S";
      expected["name"] = name;
      expected["ephemeral"] = name == lone;
      const Item& item = consumers.at("S." + name);
      CHECK(object(item) == expected);
      CHECK(std::get<Item>(nats.read(kConsumer, "S." + name)) == item);
    }
  }
  CHECK(nats.list(kConsumer, below("empty")).empty());
  CHECK(nats.error(kConsumer, ListJob{below("none"), "", 10}).code == Errc::kNotFound);
}

TEST_CASE("nats: more consumers than one page of the API has") {
  Nats nats;
  Client client(nats.server.url());
  client.stream({{"name", "S"}, {"subjects", {"s"}}, {"storage", "memory"}});
  constexpr int kMany = 300;
  for (int i = 0; i < kMany; ++i) {
    client.durable("S", {{"durable_name", "c" + std::to_string(i)}, {"ack_policy", "none"}, {"mem_storage", true}});
  }
  const auto consumers = by_id(nats.list(kConsumer, below("S"), 128));
  CHECK(consumers.size() == kMany);
  for (int i = 0; i < kMany; ++i) CHECK(consumers.contains("S.c" + std::to_string(i)));
}

TEST_CASE("nats: what changes between two pages neither hides nor repeats the rest") {
  Nats nats;
  Client client(nats.server.url());
  for (const std::string name : {"a", "b", "c", "d"}) client.stream({{"name", name}, {"subjects", {"x." + name}}});
  const auto first = std::get<ListResult>(nats.run(kStream, ListJob{std::nullopt, "", 2}));
  REQUIRE(first.items.size() == 2);
  client.api("STREAM.DELETE.a", Json::object());
  client.api("STREAM.DELETE.b", Json::object());  // the id of the page token
  const auto second = std::get<ListResult>(nats.run(kStream, ListJob{std::nullopt, first.next_page_token, 2}));
  REQUIRE(second.items.size() == 2);
  CHECK(second.items[0].native_id == "c");
  CHECK(second.items[1].native_id == "d");
  CHECK(second.next_page_token.empty());
}

TEST_CASE("nats: what is deleted is not found, and what is made again is another object") {
  Nats nats;
  Client client(nats.server.url());
  client.stream({{"name", "S"}, {"subjects", {"s"}}});
  client.durable("S", {{"durable_name", "c"}, {"ack_policy", "none"}});
  const auto stream = std::get<Item>(nats.read(kStream, "S"));
  const auto consumer = std::get<Item>(nats.read(kConsumer, "S.c"));

  nats.server.stop();
  nats.server.start();
  CHECK(std::get<Item>(nats.read(kStream, "S")) == stream);
  CHECK(std::get<Item>(nats.read(kConsumer, "S.c")) == consumer);

  Client again(nats.server.url());
  again.api("CONSUMER.DELETE.S.c", Json::object());
  CHECK(std::get<Error>(nats.read(kConsumer, "S.c")).code == Errc::kNotFound);

  again.api("STREAM.DELETE.S", Json::object());
  CHECK(std::get<Error>(nats.read(kStream, "S")).code == Errc::kNotFound);
  CHECK(std::get<Error>(nats.read(kConsumer, "S.c")).code == Errc::kNotFound);
  CHECK(std::get<Error>(nats.read(kKeyValue, "S")).code == Errc::kNotFound);
  again.stream({{"name", "S"}, {"subjects", {"s"}}});
  const auto made_again = std::get<Item>(nats.read(kStream, "S"));
  CHECK(object(made_again) == object(stream));
  CHECK(made_again.uid != stream.uid);
}

TEST_CASE("nats: ids that no object can have are refused, the others of the job answered") {
  Nats nats;
  Client client(nats.server.url());
  client.stream({{"name", "S"}, {"subjects", {"s"}}});
  const auto items = testing::read_all(nats.plugin, kStream, nats.config, {"a.b", "S", "*", "none"});
  CHECK(std::get<Error>(items[0]).code == Errc::kInvalidRequest);
  CHECK(std::get<Item>(items[1]).native_id == "S");
  CHECK(std::get<Error>(items[2]).code == Errc::kInvalidRequest);
  CHECK(std::get<Error>(items[3]).code == Errc::kNotFound);
  for (const std::string id : {"S", "S.", ".c", "S.a.b"}) {
    CHECK(std::get<Error>(nats.read(kConsumer, id)).code == Errc::kInvalidRequest);
  }
}

TEST_CASE("nats: inspect names the system, with the domain of JetStream") {
  Nats nats({.config = "jetstream { domain: hub }", .user = "", .password = "", .jetstream = false});
  nats.config = {{"domain", "hub"}};
  const auto inspection = std::get<InspectResult>(nats.run("", InspectJob{}));
  CHECK(inspection.system == "nats:127.0.0.1:" + std::to_string(nats.server.port()) + "/hub");
  CHECK(nats.list(kStream).empty());
  nats.config = {{"domain", "elsewhere"}};
  CHECK(nats.error("", InspectJob{}).code == Errc::kUnsupported);
}

TEST_CASE("nats: each call to the server is counted") {
  Nats nats;
  std::get<ListResult>(nats.run(kStream, ListJob{std::nullopt, "", 10}));
  CHECK(nats.context.calls() == 1);
  std::get<ReadResult>(nats.run(kStream, ReadJob{{"a", "b"}}));
  CHECK(nats.context.calls() == 3);
}

TEST_CASE("nats: a server that is not there, and one without JetStream") {
  Nats nats(test::NatsServerOptions{});
  const auto off = nats.error(kStream, ListJob{std::nullopt, "", 10});
  CHECK(off.code == Errc::kUnsupported);
  CHECK_THAT(off.message, Catch::StartsWith("JetStream is not enabled"));
  nats.server.stop();
  CHECK(nats.error(kStream, ListJob{std::nullopt, "", 10}).code == Errc::kServiceUnavailable);
  CHECK(nats.error("", InspectJob{}).code == Errc::kServiceUnavailable);
  CHECK(std::get<Error>(nats.read(kStream, "S")).code == Errc::kServiceUnavailable);
}

TEST_CASE("nats: a wrong password is denied, and stands in no message") {
  Nats nats({.config = "", .user = "me", .password = "right-canary", .jetstream = true});
  CHECK(nats.list(kStream).empty());
  nats.config = {{"url", "nats://me:wrong-canary@127.0.0.1:" + std::to_string(nats.server.port())}};
  const auto denied = nats.error(kStream, ListJob{std::nullopt, "", 10});
  CHECK(denied.code == Errc::kAccessDenied);
  CHECK_THAT(denied.message, !Catch::Contains("canary"));
  nats.server.stop();
  CHECK_THAT(nats.error("", InspectJob{}).message, !Catch::Contains("canary"));
}

TEST_CASE("nats: a user without the permission is denied, not kept waiting") {
  Nats nats({.config = R"(authorization { users: [{user: u, password: p, permissions: {
                 publish: ["$JS.API.STREAM.LIST"], subscribe: ["_INBOX.>"]}}] })",
             .user = "",
             .password = "",
             .jetstream = true});
  nats.config = {{"url", "nats://u:p@127.0.0.1:" + std::to_string(nats.server.port())}};
  CHECK(nats.list(kStream).empty());
  const auto denied = nats.error("", InspectJob{});
  CHECK(denied.code == Errc::kAccessDenied);
  CHECK_THAT(denied.message, Catch::Contains("$JS.API.INFO"));
}

TEST_CASE("nats: what is denied of one object says nothing of the next, however long its answer takes") {
  Nats nats({.config = R"(authorization { users: [{user: server, password: p}, {user: u, password: p, permissions: {
                 publish: ["$JS.API.STREAM.INFO.b"], subscribe: ["_INBOX.>"]}}] })",
             .user = "",
             .password = "",
             .jetstream = false});
  const auto port = std::to_string(nats.server.port());
  nats.config = {{"url", "nats://u:p@127.0.0.1:" + port}};
  Client far("nats://server:p@127.0.0.1:" + port);
  natsSubscription* raw = nullptr;
  REQUIRE(natsConnection_SubscribeSync(&raw, far.get(), "$JS.API.STREAM.INFO.b") == NATS_OK);
  const SubscriptionPtr subscription(raw);
  REQUIRE(natsConnection_Flush(far.get()) == NATS_OK);
  std::promise<void> ended;
  std::jthread slow([&, ends = ended.get_future()] {
    natsMsg* request = nullptr;
    if (natsSubscription_NextMsg(&request, raw, 30'000) != NATS_OK) return;
    const MsgPtr asked(request);
    ends.wait_for(std::chrono::milliseconds(300));
    natsConnection_PublishString(far.get(), natsMsg_GetReply(request), R"({"config":{"name":"b"}})");
    natsConnection_Flush(far.get());
  });
  const auto result = nats.run(kStream, ReadJob{{"a", "b", "a"}});
  ended.set_value();
  const auto& items = std::get<ReadResult>(result).items;
  REQUIRE(items.size() == 3);
  CHECK(std::get<Error>(items[0]).code == Errc::kAccessDenied);
  CHECK(std::holds_alternative<Item>(items[1]));
  CHECK(std::get<Error>(items[2]).code == Errc::kAccessDenied);
}

TEST_CASE("nats: a file that cannot be read is named") {
  Nats nats;
  for (const std::string key : {"creds", "nkey_seed"}) {
    for (const std::string file : {"/nonexistent/file", "/tmp"}) {
      nats.config = {{key, file}};
      const auto error = nats.error("", InspectJob{});
      CHECK(error.code == Errc::kInvalidRequest);
      CHECK_THAT(error.message, Catch::Contains(file));
    }
  }
}

TEST_CASE("nats: a job ends when it is cancelled, or at its deadline, though nobody answers") {
  Nats nats(test::NatsServerOptions{});
  Client silent(nats.server.url());
  natsSubscription* raw = nullptr;
  REQUIRE(natsConnection_SubscribeSync(&raw, silent.get(), "$JS.API.>") == NATS_OK);
  const SubscriptionPtr subscription(raw);
  REQUIRE(natsConnection_Flush(silent.get()) == NATS_OK);

  SECTION("cancelled") {
    std::jthread cancel([&] {
      natsMsg* request = nullptr;
      if (natsSubscription_NextMsg(&request, raw, 30'000) == NATS_OK) natsMsg_Destroy(request);
      nats.context.stop();
    });
    const auto result = std::get<ReadResult>(nats.run(kStream, ReadJob{{"a", "b"}}));
    for (const auto& item : result.items) CHECK(std::get<Error>(item).code == Errc::kCancelled);
  }
  SECTION("deadline") {
    nats.context.set_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(3));
    const auto result = std::get<ReadResult>(nats.run(kStream, ReadJob{{"a", "b"}}));
    for (const auto& item : result.items) CHECK(std::get<Error>(item).code == Errc::kTimeout);
  }
}

TEST_CASE(
    "nats: a job ends when it is cancelled, or at its deadline, though its server falls silent in the handshake") {
  test::SilentNats server;
  Nats nats(test::NatsServerOptions{});
  nats.config = {{"url", server.url()}};
  const bool cancelled = GENERATE(true, false);
  nats.context.set_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(cancelled ? 60 : 1));
  std::thread silent([&] {
    server.greet_one();
    if (cancelled) nats.context.stop();
  });
  const auto error = nats.error("", InspectJob{});
  CHECK(error.code == (cancelled ? Errc::kCancelled : Errc::kServiceUnavailable));
  silent.join();
}
