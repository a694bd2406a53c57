#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "coordinator/difference.h"
#include "integration/plugin_nats_target.h"
#include "support/properties_hash.h"

using namespace muster;
using test::Client;
using test::hash_of;
using test::kConsumer;
using test::kKeyValue;
using test::kStream;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// The plugin as a coordinator uses it: what is declared is put over what is there.
struct Nats : test::Nats {
  using test::Nats::Nats;

  PropertyRule rules(const std::string& type) const {
    for (const auto& each : plugin.manifest().types) {
      if (each.name == type) return property_rules(each.schema).value();
    }
    return {};
  }
  Item item(const std::string& type, const std::string& id) {
    auto answer = read(type, id);
    if (const auto* error = std::get_if<Error>(&answer)) FAIL(type << " " << id << ": " << error->message);
    return std::get<Item>(answer);
  }
  Json properties(const std::string& type, const std::string& id) { return Json::parse(item(type, id).properties); }
  bool is_there(const std::string& type, const std::string& id) { return std::holds_alternative<Item>(read(type, id)); }

  void check_made(const std::string& type, const JobResult& result, const Json& declared) {
    INFO(declared.dump());
    if (const auto* error = std::get_if<Error>(&result)) FAIL(type << ": " << error->message);
    const auto& made = std::get<MutationResult>(result);
    CHECK(made.status == MutationStatus::kSuccess);
    const auto there = item(type, made.native_id);
    CHECK(there.properties == made.properties);
    CHECK(there.uid == made.uid);
    CHECK(compare(rules(type), Json::parse(there.properties), declared).patch == Json::array());
  }

  static CreateJob create_job(const Json& declared) { return {"key", {declared.dump(), {}}, std::nullopt}; }
  std::string create(const std::string& type, const Json& declared) {
    const auto result = run(type, create_job(declared));
    check_made(type, result, declared);
    return std::get<MutationResult>(result).native_id;
  }
  Error create_error(const std::string& type, const Json& declared) {
    INFO(declared.dump());
    const auto result = run(type, create_job(declared));
    REQUIRE(std::holds_alternative<Error>(result));
    return std::get<Error>(result);
  }

  UpdateJob update_job(const std::string& type, const std::string& id, const Json& declared) {
    const auto there = item(type, id);
    const auto prior = Json::parse(there.properties);
    const auto known = rules(type);
    return {"key",
            id,
            there.properties,
            {merge_declared(known, prior, declared).dump(), {}},
            compare(known, prior, declared).patch.dump(),
            {there.uid, hash_of(there.properties)}};
  }
  void update(const std::string& type, const std::string& id, const Json& declared) {
    const auto before = item(type, id);
    check_made(type, run(type, update_job(type, id, declared)), declared);
    CHECK(item(type, id).uid == before.uid);
  }
  Error update_error(const std::string& type, const std::string& id, const Json& declared) {
    INFO(declared.dump());
    const auto before = item(type, id);
    const auto result = run(type, update_job(type, id, declared));
    REQUIRE(std::holds_alternative<Error>(result));
    CHECK(item(type, id) == before);  // nothing was applied
    return std::get<Error>(result);
  }

  void remove(const std::string& type, const std::string& id) {
    for (int i = 0; i < 2; ++i) {  // the second time it is gone already
      const auto result = run(type, DeleteJob{"key", id, {}});
      if (const auto* error = std::get_if<Error>(&result)) FAIL(type << " " << id << ": " << error->message);
      CHECK(std::get<Error>(read(type, id)).code == Errc::kNotFound);
    }
  }
};

}  // namespace

TEST_CASE("nats: streams are made, changed in place, removed") {
  Nats nats;
  const Json declared{{"name", "größe-1"},       {"subjects", {"a.>", "b"}},  {"description", "with \"quotes\""},
                      {"retention", "interest"}, {"storage", "memory"},       {"max_age", 60 * kSecond},
                      {"max_msgs", -1},          {"no_ack", false},           {"sources", Json::array()},
                      {"max_bytes", nullptr},    {"metadata", Json::object()}};
  CHECK(nats.create(kStream, declared) == "größe-1");
  CHECK(nats.create_error(kStream, declared).code == Errc::kAlreadyExists);  // though the server would say yes
  CHECK(nats.create_error(kStream, {{"name", "größe-1"}}).code == Errc::kAlreadyExists);
  CHECK(nats.create(kStream, {{"name", "plain"}}) == "plain");
  CHECK(nats.create(kStream, {{"name", "mirror"}, {"mirror", {{"name", "plain"}}}}) == "mirror");
  CHECK(nats.create(kStream, {{"name", "again"},
                              {"subjects", {"r.>"}},
                              {"sources", {{{"name", "plain"}}, {{"name", "größe-1"}, {"filter_subject", "b"}}}},
                              {"republish", {{"src", "r.>"}, {"dest", "t.>"}}}}) == "again");

  for (const Json& change :
       {Json{{"description", "other"}}, Json{{"subjects", {"b", "a.>", "c"}}}, Json{{"subjects", {"c"}}},
        Json{{"discard", "new"}, {"max_msgs", 5}}, Json{{"max_msgs", nullptr}}, Json{{"max_age", 300 * kSecond}},
        Json{{"max_age", nullptr}}, Json{{"duplicate_window", kSecond}}, Json{{"max_msg_size", 100}},
        Json{{"no_ack", true}}, Json{{"allow_direct", true}}, Json{{"allow_rollup_hdrs", true}},
        Json{{"deny_delete", true}}, Json{{"description", nullptr}, {"no_ack", nullptr}}, Json::object()}) {
    nats.update(kStream, "größe-1", change);
  }
  nats.update(kStream, "again", {{"sources", {{{"name", "größe-1"}}}}});
  for (const char* id : {"mirror", "again", "plain", "größe-1"}) nats.remove(kStream, id);
}

TEST_CASE("nats: what a server leaves out, as it is no more than nothing, is as declared") {
  Nats nats;
  const Json quiet{{"src", "b"}, {"dest", "t.b"}, {"headers_only", false}};
  const Json whole{{"name", "base"}, {"opt_start_seq", 0}, {"filter_subject", ""}};
  nats.create(kStream, {{"name", "base"}, {"subjects", {"b"}}, {"republish", quiet}});
  nats.create(kStream, {{"name", "other"}});
  nats.create(kStream, {{"name", "mirror"}, {"mirror", whole}});
  nats.create(kStream, {{"name", "sourced"},
                        {"sources", {whole, {{"name", "other"}, {"opt_start_seq", 7}}}},
                        {"placement", {{"cluster", ""}, {"tags", Json::array()}}}});
  nats.update(kStream, "mirror", {{"mirror", whole}, {"description", "d"}});
  nats.update(kStream, "sourced", {{"sources", {whole}}});
  nats.create(kKeyValue, {{"bucket", "b"}, {"republish", {{"src", ">"}, {"dest", "t.>"}, {"headers_only", false}}}});
}

TEST_CASE("nats: what a server would keep in another spelling is refused, and nothing is made") {
  Nats nats;
  nats.create(kStream, {{"name", "S"}});
  const auto refused = [&](const char* type, const Json& declared, const char* id) {
    CHECK(nats.create_error(type, declared).code == Errc::kInvalidRequest);
    CHECK_FALSE(nats.is_there(type, id));
  };
  const auto consumer = [](const char* time) {
    return Json{{"stream", "S"}, {"name", "c"}, {"deliver_policy", "by_start_time"}, {"opt_start_time", time}};
  };
  for (const char* time : {"2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.120Z", "2024-01-01T00:00:00+00:00",
                           "2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00.1234567891Z"}) {
    refused(kConsumer, consumer(time), "S.c");
    const Json from{{"name", "S"}, {"opt_start_time", time}};
    refused(kStream, {{"name", "M"}, {"mirror", from}}, "M");
    refused(kStream, {{"name", "M"}, {"sources", {from}}}, "M");
  }
  refused(kStream, {{"name", "M"}, {"sources", {{{"name", "S"}}}}, {"subjects", Json::array()}}, "M");
  refused(kStream, {{"name", "M"}, {"republish", {{"src", ""}, {"dest", "M.again.>"}}}}, "M");
  refused(kKeyValue, {{"bucket", "m"}, {"republish", {{"src", ""}, {"dest", "M.again.>"}}}}, "m");
  for (const char* time : {"2024-01-01T00:00:00Z", "2024-01-01T00:00:00.12Z", "2024-01-01T00:00:00.000000001+02:00",
                           "2024-01-01T00:00:00-00:30"}) {
    nats.remove(kConsumer, nats.create(kConsumer, consumer(time)));
  }
}

TEST_CASE("nats: what a server refuses of a stream changes nothing") {
  Nats nats;
  nats.create(kStream, {{"name", "S"}, {"subjects", {"s.>"}}});
  for (const Json& change : {Json{{"storage", "memory"}}, Json{{"name", "T"}}, Json{{"mirror", {{"name", "X"}}}},
                             Json{{"retention", "workqueue"}}, Json{{"max_consumers", 3}},
                             Json{{"republish", {{"src", "s.>"}, {"dest", "t.>"}}}}, Json{{"max_msgs", 0}},
                             Json{{"max_msgs", -2}}, Json{{"max_msgs", "5"}}, Json{{"retention", "no such"}},
                             Json{{"unheard_of", 1}}, Json{{"subjects", nullptr}}, Json{{"subjects", {"$JS.API.>"}}}}) {
    INFO(change.dump());
    CHECK(nats.update_error(kStream, "S", change).code == Errc::kInvalidRequest);
  }
  for (const Json& declared :
       {Json::object(), Json{{"name", "a.b"}}, Json{{"name", "a b"}}, Json{{"name", ""}}, Json{{"name", 7}},
        Json{{"name", std::string(256, 'n')}}, Json{{"name", "T"}, {"sealed", true}},
        Json{{"name", "T"}, {"subjects", {"s.x"}}}, Json{{"name", "T"}, {"num_replicas", 3}},
        Json{{"name", "T"}, {"max_age", kSecond}, {"duplicate_window", 2 * kSecond}}}) {
    INFO(declared.dump());
    CHECK(nats.create_error(kStream, declared).code == Errc::kInvalidRequest);
  }
  CHECK_FALSE(nats.is_there(kStream, "T"));
}

TEST_CASE("nats: what is too long for the server's messages is not sent, and not unknown") {
  Nats nats({.config = "max_payload: 4096", .user = "", .password = "", .jetstream = true});
  Json subjects = Json::array();
  for (int i = 0; i < 100; ++i) subjects.push_back("long." + std::string(60, 's') + std::to_string(i));
  CHECK(nats.create_error(kStream, {{"name", "S"}, {"subjects", subjects}}).code == Errc::kLimit);
  CHECK_FALSE(nats.is_there(kStream, "S"));
  nats.create(kStream, {{"name", "S"}, {"subjects", {"short"}}});
  CHECK(nats.update_error(kStream, "S", {{"subjects", subjects}}).code == Errc::kLimit);
}

TEST_CASE("nats: what an older server does not know is said, and not taken for done") {
  Nats nats;
  const auto made = nats.create_error(kStream, {{"name", "S"}, {"metadata", {{"a", "b"}}}});
  const auto known = nats.is_there(kStream, "S") && nats.properties(kStream, "S").contains("metadata");
  if (known) return;  // a newer server
  CHECK(made.code == Errc::kNotStabilized);
  CHECK_THAT(made.message, Catch::EndsWith("metadata"));
  const auto result = nats.run(kStream, nats.update_job(kStream, "S", {{"metadata", {{"a", "b"}}}}));
  CHECK(std::get<Error>(result).code == Errc::kNotStabilized);
}

TEST_CASE("nats: consumers are made, changed in place, removed") {
  Nats nats;
  nats.create(kStream, {{"name", "S"}, {"subjects", {"s.>"}}});
  const Json pull{
      {"stream", "S"},     {"name", "größe"},           {"ack_policy", "explicit"}, {"ack_wait", 60 * kSecond},
      {"max_deliver", 5},  {"filter_subject", "s.one"}, {"deliver_policy", "new"},  {"description", "pulled"},
      {"backoff", nullptr}};
  CHECK(nats.create(kConsumer, pull) == "S.größe");
  CHECK(nats.properties(kConsumer, "S.größe")["ephemeral"] == false);
  CHECK(nats.create_error(kConsumer, pull).code == Errc::kAlreadyExists);
  auto changed = pull;
  changed["max_deliver"] = 9;  // which a server before 2.10 would have taken for a change
  CHECK(nats.create_error(kConsumer, changed).code == Errc::kAlreadyExists);
  CHECK(nats.properties(kConsumer, "S.größe")["max_deliver"] == 5);
  CHECK(nats.create(kConsumer, {{"stream", "S"},
                                {"name", "push"},
                                {"durable_name", "push"},
                                {"deliver_subject", "to.me"},
                                {"flow_control", true},
                                {"idle_heartbeat", kSecond}}) == "S.push");
  CHECK(nats.create_error(kConsumer, {{"stream", "gone"}, {"name", "c"}}).code == Errc::kNotFound);
  CHECK(nats.create_error(kConsumer, {{"stream", "S"}, {"name", "c"}, {"durable_name", "d"}}).code ==
        Errc::kInvalidRequest);

  for (const Json& change :
       {Json{{"description", "other"}}, Json{{"max_deliver", -1}}, Json{{"max_deliver", nullptr}},
        Json{{"ack_wait", kSecond}}, Json{{"max_ack_pending", 7}}, Json{{"filter_subject", "s.two"}},
        Json{{"filter_subject", nullptr}}, Json{{"max_deliver", 4}, {"backoff", {kSecond, 2 * kSecond}}},
        Json{{"headers_only", true}}, Json{{"inactive_threshold", 100 * kSecond}}, Json{{"sample_freq", "50"}},
        Json{{"max_batch", 3}}, Json::object()}) {
    nats.update(kConsumer, "S.größe", change);
  }
  nats.update(kConsumer, "S.push", {{"deliver_subject", "elsewhere"}, {"deliver_group", "g"}});
  for (const Json& change : {Json{{"ack_policy", "all"}}, Json{{"deliver_policy", "all"}},
                             Json{{"replay_policy", "original"}}, Json{{"max_waiting", 7}}, Json{{"name", "other"}},
                             Json{{"stream", "other"}}, Json{{"deliver_subject", "to.me"}}, Json{{"max_deliver", 0}},
                             Json{{"max_deliver", 1}}, Json{{"unheard_of", 1}}, Json{{"ack_wait", nullptr}}}) {
    INFO(change.dump());
    CHECK(nats.update_error(kConsumer, "S.größe", change).code == Errc::kInvalidRequest);
  }
  nats.remove(kConsumer, "S.größe");
  nats.remove(kStream, "S");  // and its consumers
  CHECK(std::holds_alternative<MutationResult>(nats.run(kConsumer, DeleteJob{"key", "S.push", {}})));
}

TEST_CASE("nats: a consumer waits as its backoff says, whatever else is declared") {
  Nats nats;
  nats.create(kStream, {{"name", "S"}});
  const Json backoff{kSecond, 2 * kSecond};
  Json declared{{"stream", "S"},    {"name", "c"},        {"ack_policy", "explicit"},
                {"max_deliver", 5}, {"backoff", backoff}, {"ack_wait", kSecond}};
  nats.create(kConsumer, declared);
  declared["ack_wait"] = 30 * kSecond;  // the server would take it for a second
  CHECK(nats.update_error(kConsumer, "S.c", declared).code == Errc::kInvalidRequest);
  declared["name"] = "d";
  CHECK(nats.create_error(kConsumer, declared).code == Errc::kInvalidRequest);
  CHECK_FALSE(nats.is_there(kConsumer, "S.d"));
  nats.update(kConsumer, "S.c", {{"backoff", {3 * kSecond}}});
  nats.update(kConsumer, "S.c", {{"backoff", nullptr}, {"ack_wait", 30 * kSecond}});
}

TEST_CASE("nats: buckets are made as clients make them, changed in place, removed") {
  Nats nats;
  CHECK(nats.create(kKeyValue, {{"bucket", "settings"},
                                {"max_msgs_per_subject", 5},
                                {"max_age", 600 * kSecond},
                                {"storage", "memory"},
                                {"max_bytes", 100'000}}) == "settings");
  CHECK(nats.create(kKeyValue, {{"bucket", "plain"}}) == "plain");
  CHECK(nats.create_error(kKeyValue, {{"bucket", "plain"}}).code == Errc::kAlreadyExists);
  Client client(nats.server.url());
  for (const char* bucket : {"settings", "plain"}) {
    jsCtx* js = nullptr;
    kvStore* raw = nullptr;
    REQUIRE(natsConnection_JetStream(&js, client.get(), nullptr) == NATS_OK);
    CHECK(js_KeyValue(&raw, js, bucket) == NATS_OK);
    CHECK(kvStore_PutString(nullptr, raw, "key", "value") == NATS_OK);
    CHECK(kvStore_Delete(raw, "key") == NATS_OK);
    kvStore_Destroy(raw);
    jsCtx_Destroy(js);
  }
  // What the client itself would have made.
  const auto stream = nats.properties(kStream, "KV_plain");
  jsCtx* js = nullptr;
  kvStore* raw = nullptr;
  kvConfig config;
  kvConfig_Init(&config);
  config.Bucket = "by_client";
  REQUIRE(natsConnection_JetStream(&js, client.get(), nullptr) == NATS_OK);
  REQUIRE(js_CreateKeyValue(&raw, js, &config) == NATS_OK);
  kvStore_Destroy(raw);
  jsCtx_Destroy(js);
  auto by_client = nats.properties(kStream, "KV_by_client");
  by_client["name"] = stream["name"];
  by_client["subjects"] = stream["subjects"];
  CHECK(by_client == stream);

  for (const Json& change : {Json{{"max_msgs_per_subject", 64}}, Json{{"max_age", kSecond}}, Json{{"max_age", nullptr}},
                             Json{{"description", "d"}}, Json{{"max_bytes", nullptr}}, Json{{"max_msg_size", 100}},
                             Json{{"max_msgs_per_subject", nullptr}}}) {
    nats.update(kKeyValue, "settings", change);
  }
  for (const Json& change : {Json{{"storage", "file"}}, Json{{"bucket", "other"}}, Json{{"max_bytes", 0}}}) {
    CHECK(nats.update_error(kKeyValue, "settings", change).code == Errc::kInvalidRequest);
  }
  for (const Json& declared :
       {Json{{"bucket", "a.b"}}, Json{{"bucket", "größe"}}, Json{{"bucket", "b"}, {"discard", "old"}},
        Json{{"name", "KV_b"}}, Json{{"bucket", std::string(253, 'b')}}}) {
    CHECK(nats.create_error(kKeyValue, declared).code == Errc::kInvalidRequest);
  }
  nats.remove(kKeyValue, "settings");
  nats.remove(kKeyValue, "plain");
}

TEST_CASE("nats: a change that somebody else overtook is a conflict") {
  Nats nats;
  Client client(nats.server.url());
  nats.create(kStream, {{"name", "S"}, {"subjects", {"s"}}});
  nats.create(kConsumer, {{"stream", "S"}, {"name", "c"}, {"ack_policy", "explicit"}});
  nats.create(kKeyValue, {{"bucket", "b"}});
  struct Case {
    std::string type, id;
    Json declared;
    std::function<void()> meanwhile;
  };
  const auto bucket = nats.properties(kStream, "KV_b");
  const std::vector<Case> cases{
      {kStream,
       "S",
       {{"max_msgs", 5}},
       [&] {
         client.api("STREAM.UPDATE.S", {{"name", "S"}, {"subjects", {"t"}}});
       }},
      {kConsumer,
       "S.c",
       {{"max_deliver", 5}},
       [&] {
         client.durable("S", {{"durable_name", "c"}, {"ack_policy", "explicit"}, {"max_ack_pending", 3}});
       }},
      {kKeyValue, "b", {{"max_age", kSecond}}, [&] {
         auto other = bucket;
         other["description"] = "other";
         client.api("STREAM.UPDATE.KV_b", other);
       }}};
  for (const auto& [type, id, declared, meanwhile] : cases) {
    INFO(type);
    const auto job = nats.update_job(type, id, declared);
    meanwhile();
    const auto changed = nats.item(type, id);
    CHECK(nats.error(type, job).code == Errc::kConflict);
    CHECK(nats.error(type, DeleteJob{"key", id, job.precondition}).code == Errc::kConflict);
    CHECK(nats.item(type, id) == changed);
  }
  // Another stream of the same name, in the same state.
  const auto job = nats.update_job(kStream, "S", {{"max_msgs", 5}});
  const auto uid = nats.item(kStream, "S").uid;
  client.api("STREAM.DELETE.S", Json::object());
  CHECK(nats.error(kStream, job).code == Errc::kNotFound);
  client.stream({{"name", "S"}, {"subjects", {"t"}}});
  CHECK(nats.error(kStream, job).code == Errc::kConflict);
  CHECK(nats.error(kStream, DeleteJob{"key", "S", {uid, ""}}).code == Errc::kConflict);
}

TEST_CASE("nats: who may not write is told so, and nothing changes") {
  Nats nats({.config = R"(authorization { users: [
                 {user: all, password: p},
                 {user: reader, password: p, permissions: {
                   publish: ["$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.*.*"],
                   subscribe: ["_INBOX.>"]}}] })",
             .user = "",
             .password = "",
             .jetstream = true});
  const auto as = [&](const std::string& user) {
    nats.config = {{"url", "nats://" + user + ":p@127.0.0.1:" + std::to_string(nats.server.port())}};
  };
  as("all");
  nats.create(kStream, {{"name", "S"}});
  nats.create(kConsumer, {{"stream", "S"}, {"name", "c"}});
  as("reader");
  CHECK(nats.create_error(kStream, {{"name", "T"}}).code == Errc::kAccessDenied);
  CHECK(nats.create_error(kKeyValue, {{"bucket", "b"}}).code == Errc::kAccessDenied);
  CHECK(nats.create_error(kConsumer, {{"stream", "S"}, {"name", "d"}}).code == Errc::kAccessDenied);
  CHECK(nats.update_error(kStream, "S", {{"max_msgs", 5}}).code == Errc::kAccessDenied);
  CHECK(nats.update_error(kConsumer, "S.c", {{"max_deliver", 5}}).code == Errc::kAccessDenied);
  CHECK(nats.error(kStream, DeleteJob{"key", "S", {}}).code == Errc::kAccessDenied);
  CHECK(nats.error(kConsumer, DeleteJob{"key", "S.c", {}}).code == Errc::kAccessDenied);
  CHECK(nats.is_there(kConsumer, "S.c"));
}

TEST_CASE("nats: changes without a server are tried again, without JetStream not") {
  Nats nats(test::NatsServerOptions{});
  CHECK(nats.create_error(kStream, {{"name", "S"}}).code == Errc::kUnsupported);
  nats.server.stop();
  const auto down = nats.create_error(kStream, {{"name", "S"}}).code;
  CHECK(down == Errc::kServiceUnavailable);
  CHECK(error_traits(down).retry == Retry::kYes);
  CHECK(nats.error(kStream, DeleteJob{"key", "S", {}}).code == Errc::kServiceUnavailable);
}

TEST_CASE("nats: a change that nobody answers is unknown") {
  Nats nats(test::NatsServerOptions{});
  Client silent(nats.server.url());
  natsSubscription* info = nullptr;
  natsSubscription* change = nullptr;
  REQUIRE(natsConnection_SubscribeSync(&info, silent.get(), "$JS.API.STREAM.INFO.S") == NATS_OK);
  REQUIRE(natsConnection_SubscribeSync(&change, silent.get(), "$JS.API.STREAM.CREATE.S") == NATS_OK);
  const SubscriptionPtr infos(info), changes(change);
  REQUIRE(natsConnection_Flush(silent.get()) == NATS_OK);
  bool lose = false, stop = false;
  Errc expected = Errc::kTimeout;
  SECTION("until the deadline") {
    nats.context.set_deadline(std::chrono::steady_clock::now() + std::chrono::seconds(5));
  }
  SECTION("and the job is cancelled") {
    stop = true;
    expected = Errc::kCancelled;
  }
  SECTION("and the connection is lost") {
    lose = true;
    expected = Errc::kNetwork;
  }
  // The server is told to stop from this thread, which made it.
  JobResult result;
  std::jthread job([&] { result = nats.run(kStream, Nats::create_job({{"name", "S"}})); });
  natsMsg* request = nullptr;
  REQUIRE(natsSubscription_NextMsg(&request, info, 30'000) == NATS_OK);
  const MsgPtr asked(request);
  REQUIRE(natsConnection_PublishString(silent.get(), natsMsg_GetReply(request),
                                       R"({"error":{"code":404,"err_code":10059,"description":"stream not found"}})") ==
          NATS_OK);
  natsMsg* begun = nullptr;
  REQUIRE(natsSubscription_NextMsg(&begun, change, 30'000) == NATS_OK);
  const MsgPtr taken(begun);
  if (stop) nats.context.stop();
  if (lose) nats.server.stop();
  job.join();
  const auto error = std::get<Error>(result);
  CHECK(error.code == expected);
  CHECK(error_traits(error.code).applied == Applied::kUnknown);
}
