#include "plugins/nats/nats.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "coordinator/filter.h"
#include "plugins/nats/config.h"
#include "plugins/nats/declared.h"
#include "plugins/nats/jetstream.h"
#include "worker_sdk/testing/fake_context.h"

using namespace muster;
using namespace muster::nats;

namespace {

std::string refusal(const Json& config, const BusAccess& own = {.url = "nats://own:4222"}) {
  const auto parsed = parse_config(config, own);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == Errc::kInvalidRequest);
  return parsed.error().message;
}

/// Answers offset n with the n-th of `pages`, each of `size` names but for the last; notes what was asked.
struct Pages {
  std::vector<Json> answers;
  std::vector<std::size_t> asked{};

  Result<Listing> list() {
    return list_pages(
        [this](std::size_t offset) -> Result<Json> {
          asked.push_back(offset);
          return answers.at(asked.size() - 1);
        },
        "streams");
  }
};

Json page_of(std::size_t total, const std::vector<std::string>& names) {
  Json page{{"total", total}, {"streams", Json::array()}};
  for (const auto& name : names) page["streams"].push_back({{"config", {{"name", name}}}});
  return page;
}

std::vector<std::string> names_of(const Listing& listing) {
  std::vector<std::string> names;
  for (const auto& [name, info] : listing.infos) names.push_back(name);
  return names;
}

bool kept(const std::string& type, const Json& properties) {
  const auto filters = FilterSet::compile(plugin_info().filters);
  REQUIRE(filters);
  return filters->judge(type, properties.dump()).value();
}

Result<Resource> read_one(const std::string& type, const std::string& id) {
  const BusAccess nobody{.url = "nats://127.0.0.1:1"};
  Plugin plugin(plugin_info());
  add_types(plugin, nobody);
  const auto items = testing::read_all(plugin, type, Json::object(), {id});
  REQUIRE(items.size() == 1);
  if (const auto* error = std::get_if<Error>(&items[0])) return *error;
  return Resource{id, {}, {}};
}

/// Lets a client in, answers its first request, and reads nothing from then on.
class DeafNats {
 public:
  DeafNats() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int small = 4096;
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, raw, size) != 0 || ::listen(listener_, 4) != 0 || ::getsockname(listener_, raw, &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    url = "nats://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~DeafNats() {
    ::close(client_);
    ::close(listener_);
  }
  DeafNats(const DeafNats&) = delete;
  DeafNats& operator=(const DeafNats&) = delete;

  /// Returns when the client has begun to say more, or has gone.
  void serve(const std::string& answer) {
    client_ = ::accept(listener_, nullptr, nullptr);
    say(R"(INFO {"server_id":"deaf","version":"2.9.10","proto":1,"max_payload":67108864,"headers":true})"
        "\r\n");
    std::string inbox;
    for (;;) {
      const auto line = read_line();
      if (line.empty()) return;  // it has gone without asking
      if (line == "PING") say("PONG\r\n");
      if (line.starts_with("SUB ")) inbox = line.substr(4);  // its subject and, behind a blank or two, its number
      if (line.starts_with("PUB ")) break;
    }
    read_line();  // nothing was asked with it
    const auto subject = inbox.substr(0, inbox.find(' ')), number = inbox.substr(inbox.rfind(' ') + 1);
    say("MSG " + subject + " " + number + " " + std::to_string(answer.size()) + "\r\n" + answer + "\r\n");
    pollfd more{client_, POLLIN, 0};
    ::poll(&more, 1, -1);
  }

  std::string url;

 private:
  std::string read_line() const {
    std::string line;
    for (char c = 0; ::recv(client_, &c, 1, 0) == 1 && c != '\n';) {
      if (c != '\r') line += c;
    }
    return line;
  }
  void say(const std::string& text) const { ::send(client_, text.data(), text.size(), MSG_NOSIGNAL); }

  int listener_;
  int client_ = -1;
};

}  // namespace

TEST_CASE("nats: a stopped job ends also where its server takes no more of what it asks") {
  DeafNats server;
  testing::FakeContext context;
  context.set_deadline(std::chrono::steady_clock::now() + std::chrono::minutes(1));
  std::thread stop([&] {
    server.serve(R"({"error":{"code":404,"err_code":10059,"description":"stream not found"}})");
    context.stop();
  });
  const BusAccess own{.url = server.url};
  Plugin plugin(plugin_info());
  add_types(plugin, own);
  Job job;
  job.type = "NATS::Stream";
  const Json declared{{"name", "S"}, {"description", std::string(16 << 20, 'x')}};  // more than a socket holds
  job.operation = CreateJob{"key", {declared.dump(), {}}, std::nullopt};
  const auto result = plugin.run(job, Json::object(), context);
  stop.join();
  CHECK(error_traits(std::get<Error>(result).code).applied == Applied::kUnknown);
}

TEST_CASE("nats: the manifest holds together") {
  const BusAccess own;
  Plugin plugin(plugin_info());
  add_types(plugin, own);
  const auto manifest = plugin.manifest();
  CHECK(manifest.plugin == "nats");
  CHECK(manifest.ns == "NATS");
  REQUIRE(manifest.types.size() == 3);
  for (const auto& type : manifest.types) {
    INFO(type.name);
    const auto schema = Json::parse(type.schema);
    CHECK(type.list_gives == ListGives::kProperties);
    CHECK(type.operations ==
          std::vector{Operation::kList, Operation::kRead, Operation::kCreate, Operation::kUpdate, Operation::kDelete});
    for (const auto& text : type.examples) {
      const auto example = Json::parse(text);
      for (const auto& [key, value] : example.items()) CHECK(schema["properties"].contains(key));
    }
  }
  CHECK(manifest.types[1].parent == "NATS::Stream");
  CHECK_FALSE(Json::parse(manifest.config_schema)["additionalProperties"].get<bool>());
}

TEST_CASE("nats: a target without url is the worker's own bus") {
  const BusAccess own{.url = "tls://own:4222", .creds = "/own.creds", .tls_ca = "/ca.pem"};
  const auto config = parse_config(Json::object(), own).value();
  CHECK(config.server.url == own.url);
  CHECK(config.server.creds == own.creds);
  CHECK(config.server.tls_ca == own.tls_ca);
  CHECK(config.domain.empty());

  const auto other_user = parse_config({{"nkey_seed", "/seed"}, {"domain", "hub"}}, own).value();
  CHECK(other_user.server.url == own.url);
  CHECK(other_user.server.creds.empty());
  CHECK(other_user.server.nkey_seed == "/seed");
  CHECK(other_user.server.tls_ca == own.tls_ca);
  CHECK(other_user.domain == "hub");
}

TEST_CASE("nats: a target with a url has nothing of the worker's own login") {
  const BusAccess own{.url = "nats://own:4222", .creds = "/own.creds", .tls_ca = "/ca.pem"};
  const Json json{{"url", "nats://there:4222"}, {"tls", {{"cert", "/c.pem"}, {"key", "/k.pem"}}}};
  const auto config = parse_config(json, own).value();
  CHECK(config.server.url == "nats://there:4222");
  CHECK(config.server.creds.empty());
  CHECK(config.server.tls_ca.empty());
  CHECK(config.server.tls_cert == "/c.pem");
  CHECK(config.server.tls_key == "/k.pem");
}

TEST_CASE("nats: a wrong config is refused by its key") {
  CHECK(refusal(Json::array()) == "config: must be an object");
  CHECK_THAT(refusal(Json::object(), {}), Catch::StartsWith("config.url: is missing"));
  CHECK_THAT(refusal({{"url", " , "}}), Catch::StartsWith("config.url: is missing"));
  CHECK_THAT(refusal({{"url", 7}}), Catch::StartsWith("config.url: must be"));
  CHECK_THAT(refusal({{"creds", ""}}), Catch::StartsWith("config.creds: must be"));
  CHECK_THAT(refusal({{"creds", "/a"}, {"nkey_seed", "/b"}}), Catch::StartsWith("config.nkey_seed: "));
  CHECK_THAT(refusal({{"domain", "a.b"}}), Catch::StartsWith("config.domain: "));
  CHECK(refusal({{"uri", "nats://x"}}) == "config.uri: unknown key");
  CHECK(refusal({{"tls", "on"}}) == "config.tls: must be an object");
  CHECK(refusal({{"tls", {{"cert", "/c"}}}}) == "config.tls: cert and key need each other");
  CHECK(refusal({{"tls", {{"verify", "no"}}}}) == "config.tls.verify: unknown key");
}

TEST_CASE("nats: the system is named by servers and domain, never by a login") {
  const auto system = [](const std::string& url, const std::string& domain) { return system_of({.url = url}, domain); };
  CHECK(system("nats://127.0.0.1:4223", "") == "nats:127.0.0.1:4223");
  CHECK(system("Hub.Example", "") == "nats:hub.example:4222");
  CHECK(system("tls://me:secr@t@b:1, nats://token@a:2/", "hub") == "nats:a:2,b:1/hub");
  CHECK(system("nats://[::1]", "") == "nats:[::1]:4222");
  CHECK(system("nats://[::1]:5", "") == "nats:[::1]:5");
}

TEST_CASE("nats: names are what can be one token of a subject") {
  CHECK(valid_name("ORDERS-1_x"));
  CHECK(valid_name("größe"));
  CHECK(valid_name(std::string(255, 'a')));
  for (const std::string bad : {"", "a.b", "a*", ">", "a b", "a\tb", "a\r\n"}) CHECK_FALSE(valid_name(bad));
  CHECK_FALSE(valid_name(std::string(256, 'a')));
}

TEST_CASE("nats: an id that no object can have is refused before anybody is asked") {
  // Nobody listens there: whatever came to be asked would be SERVICE_UNAVAILABLE.
  for (const std::string id : {"a.b", "a b", ">"}) CHECK(read_one("NATS::Stream", id).error().code != Errc::kNotFound);
  CHECK(read_one("NATS::Stream", "A").error().code == Errc::kServiceUnavailable);
}

TEST_CASE("nats: errors are told apart by err_code") {
  const auto code = [](int err_code, int http) {
    return error_of({{"code", http}, {"err_code", err_code}, {"description", "why"}}).code;
  };
  CHECK(code(10059, 404) == Errc::kNotFound);
  CHECK(code(10014, 404) == Errc::kNotFound);
  CHECK(code(10058, 400) == Errc::kAlreadyExists);
  CHECK(code(10148, 400) == Errc::kAlreadyExists);
  CHECK(code(10025, 400) == Errc::kInvalidRequest);
  CHECK(code(10052, 500) == Errc::kInvalidRequest);
  CHECK(code(10039, 503) == Errc::kUnsupported);
  CHECK(code(10076, 503) == Errc::kUnsupported);
  CHECK(code(10071, 400) == Errc::kConflict);
  for (const int refused : {10012, 10074}) CHECK(code(refused, 500) == Errc::kInvalidRequest);
  CHECK(code(19999, 400) == Errc::kInvalidRequest);
  for (const int busy : {10008, 10009, 10023}) CHECK(code(busy, 503) == Errc::kServiceUnavailable);
  for (const int limit : {10002, 10026, 10027, 10028, 10047}) CHECK(code(limit, 400) == Errc::kLimit);
  CHECK(code(19999, 404) == Errc::kInternalFailure);
  CHECK(code(19999, 429) == Errc::kThrottling);
  CHECK(error_of({{"code", 404}, {"err_code", 10059}, {"description", "stream not found"}}).message ==
        "stream not found (err_code 10059)");
  CHECK(error_of(Json::object()).code == Errc::kInternalFailure);
}

TEST_CASE("nats: pages of a listing are put together") {
  Pages pages{{page_of(3, {"a", "b"}), page_of(3, {"c"})}};
  const auto listing = pages.list().value();
  CHECK(names_of(listing) == std::vector<std::string>{"a", "b", "c"});
  CHECK(listing.settled);
  CHECK(pages.asked == std::vector<std::size_t>{0, 2});
}

TEST_CASE("nats: nothing slips through when the number of streams changes between pages") {
  // `a` is deleted after the first page: the second begins behind `c`, which is only seen at the next try.
  Pages pages{{page_of(4, {"a", "b"}), page_of(3, {"d"}), page_of(3, {"b", "c"}), page_of(3, {"d"})}};
  const auto listing = pages.list().value();
  CHECK(names_of(listing) == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(listing.settled);
}

TEST_CASE("nats: a listing that never comes to rest says so") {
  std::vector<Json> answers;
  for (std::size_t i = 0; i < 3; ++i) {
    answers.push_back(page_of(3, {"a", "b"}));
    answers.push_back(page_of(4, {}));
  }
  Pages pages{answers};
  CHECK_FALSE(pages.list().value().settled);
  CHECK(pages.asked.size() == 6);
}

TEST_CASE("nats: streams that a cluster could not tell of are missing, not gone") {
  auto page = page_of(3, {"a"});
  page["missing"] = {"b", "c"};
  Pages pages{{page}};
  const auto listing = pages.list().value();
  CHECK(names_of(listing) == std::vector<std::string>{"a"});
  CHECK(listing.missing == std::vector<std::string>{"b", "c"});
  CHECK(listing.settled);
}

TEST_CASE("nats: an answer that is none of JetStream is an error") {
  const std::vector<Json> bad{Json::object(), Json{{"total", 1}}, Json{{"total", "x"}, {"streams", Json::array()}},
                              Json{{"total", 1}, {"streams", {{{"config", Json::object()}}}}}};
  for (const auto& answer : bad) {
    INFO(answer.dump());
    Pages pages{{answer}};
    const auto listing = pages.list();
    REQUIRE_FALSE(listing);
    CHECK(listing.error().code == Errc::kInternalFailure);
  }
}

TEST_CASE("nats: default filters leave out what belongs to others") {
  CHECK(kept("NATS::Stream", {{"name", "ORDERS"}}));
  CHECK_FALSE(kept("NATS::Stream", {{"name", "KV_settings"}}));
  CHECK_FALSE(kept("NATS::Stream", {{"name", "OBJ_files"}}));
  CHECK(kept("NATS::Stream", {{"name", "MY_KV_x"}}));
  CHECK(kept("NATS::KeyValue", {{"name", "KV_settings"}, {"bucket", "settings"}}));

  CHECK_FALSE(kept("NATS::Stream", {{"name", "MUSTER_EVENTS"}, {"description", "What happened in the fleet muster"}}));
  CHECK_FALSE(kept("NATS::Stream", {{"name", "TEAM-A_EVENTS"}, {"description", "What happened in the fleet team-a"}}));
  CHECK(kept("NATS::Stream", {{"name", "ORDER_EVENTS"}, {"description", "What happened to orders"}}));
  CHECK(kept("NATS::Stream", {{"name", "ORDER_EVENTS"}}));

  CHECK(kept("NATS::Consumer", {{"name", "d"}, {"durable_name", "d"}, {"ephemeral", false}}));
  CHECK_FALSE(kept("NATS::Consumer", {{"name", "x"}, {"ephemeral", true}}));
}

TEST_CASE("nats: what a server keeps of a declaration") {
  const BusAccess own;
  Plugin plugin(plugin_info());
  add_types(plugin, own);
  const auto schema = Json::parse(plugin.manifest().types[0].schema);
  const Json there{{"name", "S"},
                   {"subjects", {"a", "b"}},
                   {"max_msgs", -1},
                   {"max_age", 0},
                   {"mirror", {{"name", "M"}, {"opt_start_seq", 3}}},
                   {"sources", {{{"name", "A"}, {"filter_subject", "x"}}}}};
  CHECK(not_kept(schema, {{"subjects", {"b", "a"}}, {"max_msgs", -1}, {"no_ack", false}, {"metadata", Json::object()}},
                 there) == "");
  CHECK(not_kept(schema, {{"mirror", {{"name", "M"}}}, {"sources", {{{"name", "A"}}}}, {"max_age", nullptr}}, there) ==
        "");
  CHECK(not_kept(schema, {{"metadata", {{"a", "b"}}}, {"no_ack", true}, {"max_msgs", 5}}, there) ==
        "max_msgs, metadata, no_ack");
  CHECK(not_kept(schema, {{"mirror", {{"name", "M"}, {"domain", "hub"}}}}, there) == "mirror");
  CHECK(not_kept(schema, {{"sources", Json::array()}}, there) == "sources");
}

TEST_CASE("nats: what changes is what differs between prior and desired") {
  const BusAccess own;
  Plugin plugin(plugin_info());
  add_types(plugin, own);
  const auto schema = Json::parse(plugin.manifest().types[0].schema);
  const Json prior{{"name", "S"}, {"max_age", 5}, {"sealed", false}, {"of_a_newer_server", 7}};
  CHECK(changes_of(schema, prior, prior).value() == Json::object());
  CHECK(changes_of(schema, prior, {{"name", "S"}, {"max_age", 6}}).value() == Json{{"max_age", 6}});
  CHECK(changes_of(schema, prior, {{"name", "S"}, {"of_a_newer_server", 7}}).value() == Json{{"max_age", nullptr}});
  for (const Json& mistake : {Json{{"name", "T"}}, Json{{"name", "S"}, {"max_age", "long"}},
                              Json{{"name", "S"}, {"max_age", -1}}, Json{{"name", "S"}, {"of_a_newer_server", 8}}}) {
    INFO(mistake.dump());
    const auto changes = changes_of(schema, prior, mistake);
    REQUIRE_FALSE(changes);
    CHECK(changes.error().code == Errc::kInvalidRequest);
  }
}
