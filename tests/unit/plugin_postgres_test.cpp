#include "plugins/postgres/postgres.h"

#include <array>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "plugins/postgres/declared.h"
#include "plugins/postgres/expression.h"
#include "plugins/postgres/native_id.h"
#include "plugins/postgres/sqlstate.h"
#include "support/scratch.h"
#include "worker_sdk/testing/fake_context.h"

using namespace muster;
using postgres::errc_of;
using postgres::parse_native_id;
using postgres::parse_start_error;

namespace {

using Names = std::vector<std::string>;

JobResult run(const Json& config, const std::string& type, JobOperation operation) {
  Plugin plugin(postgres::plugin_info());
  postgres::add_types(plugin);
  testing::FakeContext context;
  Job job;
  job.ns = "PG";
  job.type = type;
  job.operation = std::move(operation);
  return plugin.run(job, config, context);
}

/// Lets a client in, answers its first query, and reads nothing from then on.
class DeafServer {
 public:
  explicit DeafServer(const std::string& directory) : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = directory + "/.s.PGSQL.1";
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 4) != 0) {
      throw std::runtime_error("cannot listen at " + path);
    }
  }
  ~DeafServer() {
    ::close(client_);
    ::close(listener_);
  }
  DeafServer(const DeafServer&) = delete;
  DeafServer& operator=(const DeafServer&) = delete;

  /// Returns when the client has begun to say more.
  void serve() {
    client_ = ::accept(listener_, nullptr, nullptr);
    skip(0);
    say({'R', 0, 0, 0, 8, 0, 0, 0, 0, 'Z', 0, 0, 0, 5, 'I'});
    skip(1);
    say({'C', 0, 0, 0, 10, 'B', 'E', 'G', 'I', 'N', 0, 'Z', 0, 0, 0, 5, 'T'});
    pollfd more{client_, POLLIN, 0};
    ::poll(&more, 1, -1);
  }

 private:
  /// A message whose size stands behind so many bytes.
  void skip(std::size_t before) const {
    std::array<unsigned char, 5> head{};
    take(head.data(), before + 4);
    std::string rest((head[before + 2] << 8U | head[before + 3]) - 4U, '\0');
    take(rest.data(), rest.size());
  }
  void take(void* to, std::size_t size) const {
    if (::recv(client_, to, size, MSG_WAITALL) != static_cast<ssize_t>(size)) throw std::runtime_error("no message");
  }
  void say(const std::vector<char>& bytes) const { ::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  int listener_;
  int client_ = -1;
};

}  // namespace

TEST_CASE("native ids come apart as quote_ident put them together") {
  CHECK(parse_native_id("app") == Names{"app"});
  CHECK(parse_native_id("_a1.b_2.c") == Names{"_a1", "b_2", "c"});
  CHECK(parse_native_id(R"("Odd.Name")") == Names{"Odd.Name"});
  CHECK(parse_native_id(R"(a."b""c"."""")") == Names{"a", "b\"c", "\""});
  CHECK(parse_native_id(R"("a"".""b".c)") == Names{"a\".\"b", "c"});
  CHECK(parse_native_id(R"("select"."1a"."größe")") == Names{"select", "1a", "größe"});
  CHECK(parse_native_id("\" \n\"") == Names{" \n"});
}

TEST_CASE("the first part of an id keeps its quotes") {
  CHECK(postgres::first_part("a.b") == "a");
  CHECK(postgres::first_part(R"("a.""b".c)") == R"("a.""b")");
  CHECK(postgres::first_part("A.b").empty());
}

TEST_CASE("what no server writes is no native id") {
  for (const std::string id : {"", ".", "a.", ".a", "a..b", "\"", "\"\"", "\"a", "a\"b\"", "\"a\"b", "\"a\"\"", "A",
                               "1a", "a b", "a-b", "größe", "a$", "a.\"b\".", "\"\".a"}) {
    INFO(id);
    CHECK_FALSE(parse_native_id(id));
  }
  CHECK_FALSE(parse_native_id(std::string("\"a\0b\"", 5)));
}

TEST_CASE("SQLSTATEs are the protocol's codes") {
  const std::vector<std::pair<const char*, Errc>> expected = {{"42704", Errc::kNotFound},
                                                              {"3D000", Errc::kNotFound},
                                                              {"3F000", Errc::kNotFound},
                                                              {"42P01", Errc::kNotFound},
                                                              {"42710", Errc::kAlreadyExists},
                                                              {"42P04", Errc::kAlreadyExists},
                                                              {"42P06", Errc::kAlreadyExists},
                                                              {"42P07", Errc::kAlreadyExists},
                                                              {"22023", Errc::kInvalidRequest},
                                                              {"42601", Errc::kInvalidRequest},
                                                              {"42501", Errc::kAccessDenied},
                                                              {"28000", Errc::kAccessDenied},
                                                              {"28P01", Errc::kAccessDenied},
                                                              {"53300", Errc::kThrottling},
                                                              {"53200", Errc::kLimit},
                                                              {"54001", Errc::kLimit},
                                                              {"40001", Errc::kConflict},
                                                              {"40P01", Errc::kConflict},
                                                              {"55006", Errc::kConflict},
                                                              {"08006", Errc::kServiceUnavailable},
                                                              {"57P03", Errc::kServiceUnavailable},
                                                              {"57P01", Errc::kServiceUnavailable},
                                                              {"57014", Errc::kTimeout},
                                                              {"0A000", Errc::kUnsupported},
                                                              {"", Errc::kServiceUnavailable},
                                                              {"XX000", Errc::kInternalFailure},
                                                              {"99999", Errc::kInternalFailure},
                                                              {"42804", Errc::kInvalidRequest},
                                                              {"42883", Errc::kUnsupported},
                                                              {"23502", Errc::kInvalidRequest},
                                                              {"0LP01", Errc::kInvalidRequest},
                                                              {"2BP01", Errc::kConflict},
                                                              {"25006", Errc::kUnsupported}};
  for (const auto& [sqlstate, code] : expected) {
    INFO(sqlstate);
    CHECK(errc_of(sqlstate) == code);
  }
  CHECK(errc_of("XX000", "tuple concurrently updated") == Errc::kConflict);
  CHECK(errc_of("XX000", "tuple concurrently deleted") == Errc::kConflict);
  CHECK(errc_of("XX000", "cache lookup failed for relation 4711") == Errc::kConflict);
}

TEST_CASE("the SQLSTATE is taken out of libpq's text") {
  const auto refused = parse_start_error(
      "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  28P01: password authentication failed\n"
      "LOCATION:  auth_failed, auth.c:335\n");
  CHECK(refused.sqlstate == "28P01");
  CHECK(refused.message ==
        "connection to server at \"127.0.0.1\", port 5432 failed: FATAL: password authentication failed");
  const auto down = parse_start_error("connection to server failed: Connection refused\n\tIs the server running?\n");
  CHECK(down.sqlstate.empty());
  CHECK(down.message == "connection to server failed: Connection refused\n\tIs the server running?");
  CHECK(parse_start_error("a: FATAL:  57P03: starting\nb: FATAL:  28000: no\n").sqlstate == "28000");
  CHECK(parse_start_error("").message.empty());
}

TEST_CASE("the manifest holds: schemas, parents, filters") {
  Plugin plugin(postgres::plugin_info());
  postgres::add_types(plugin);
  const auto manifest = plugin.manifest();  // checks that the schemas are JSON
  REQUIRE(manifest.types.size() == 5);
  std::vector<std::string> parents;
  for (const auto& type : manifest.types) {
    INFO(type.name);
    CHECK(type.list_gives == ListGives::kProperties);
    CHECK(type.operations ==
          std::vector{Operation::kList, Operation::kRead, Operation::kCreate, Operation::kUpdate, Operation::kDelete});
    const auto properties = Json::parse(type.schema)["properties"];
    for (const auto& example : type.examples) {
      const auto object = Json::parse(example);
      for (const auto& [key, value] : object.items()) CHECK(properties.contains(key));
    }
    parents.push_back(type.name + "<" + type.parent);
  }
  CHECK(parents == std::vector<std::string>{"PG::Role<", "PG::Database<", "PG::Schema<PG::Database",
                                            "PG::Table<PG::Schema", "PG::Extension<PG::Database"});
  const auto password = Json::parse(manifest.types[0].schema)["properties"]["password"];
  CHECK(password["x-muster-secret"] == true);
  CHECK(password["writeOnly"] == true);
  CHECK(Json::parse(manifest.config_schema)["required"] == Json{"dsn"});
  CHECK(manifest.filters.size() == 3);
}

TEST_CASE("mistakes in the config name the key and never the dsn") {
  const std::vector<std::pair<Json, std::string>> mistakes = {
      {Json::object(), "config.dsn"},
      {{{"dsn", 1}}, "config.dsn"},
      {{{"dsn", ""}}, "config.dsn"},
      {{{"dsn", "host=x"}, {"password", "canary"}}, "config.password"},
      {{{"dsn", "host=x password=canary canary2"}}, "config.dsn"},
      {{{"dsn", "postgresql://u:can@ary@127.0.0.1/db"}}, "config.dsn"},
      {{{"dsn", "postgresql://u:can/ary@127.0.0.1/db"}}, "config.dsn"},
      {{{"dsn", "postgresql://u:can@canary/ary@127.0.0.1/db"}}, "config.dsn"},
      {{{"dsn", "postgres://u:1/canary@127.0.0.1/db"}}, "config.dsn"},
      {{{"dsn", "postgresql://u:canary@127.0.0.1/db?nonsense=1"}}, "config.dsn"},
      {{{"dsn", std::string("host=x\0canary", 13)}}, "config.dsn"}};
  for (const auto& [config, key] : mistakes) {
    for (const JobOperation& operation : {JobOperation(ListJob{}), JobOperation(InspectJob{})}) {
      const auto error = std::get<Error>(run(config, "PG::Role", operation));
      INFO(error.message);
      CHECK(error.code == Errc::kInvalidRequest);
      CHECK(error.message.find(key) == 0);
      CHECK(error.message.find("ary") == std::string::npos);
    }
    const auto answer = std::get<ReadResult>(run(config, "PG::Role", ReadJob{{"a"}})).items.at(0);
    CHECK(std::get<Error>(answer).code == Errc::kInvalidRequest);
  }
}

TEST_CASE("ids and parents that are none are refused before any connection") {
  const Json config{{"dsn", "host=127.0.0.1 port=1"}};
  const auto answers = std::get<ReadResult>(run(config, "PG::Table", ReadJob{{"db.schema", "A.b.c", "a.b.c.d"}}));
  for (const auto& answer : answers.items) CHECK(std::get<Error>(answer).code == Errc::kInvalidRequest);
  for (const char* parameters : {"{}", R"({"database":"db"})", R"({"database":"db","schema":1})"}) {
    const auto error =
        std::get<Error>(run(config, "PG::Table", ListJob{Parent{"PG::Schema", "db.s", parameters}, "", 1}));
    CHECK(error.code == Errc::kInvalidRequest);
  }
  CHECK(std::get<Error>(run(config, "PG::Schema", ListJob{})).code == Errc::kInvalidRequest);
}

TEST_CASE("nobody at the address is an outage") {
  const Json config{{"dsn", "host=127.0.0.1 port=1 password=canary"}};
  const auto error = std::get<Error>(run(config, "PG::Role", ListJob{}));
  CHECK(error.code == Errc::kServiceUnavailable);
  CHECK(error.message.find("canary") == std::string::npos);
  const auto answer = std::get<ReadResult>(run(config, "PG::Table", ReadJob{{"a.b.c"}})).items.at(0);
  CHECK(std::get<Error>(answer).code == Errc::kServiceUnavailable);
}

TEST_CASE("a stopped job ends also where its server takes no more of what it asks") {
  const test::Scratch scratch;
  DeafServer server(scratch.path.string());
  testing::FakeContext context;
  std::thread stop([&] {
    server.serve();
    context.stop();
  });
  Plugin plugin(postgres::plugin_info());
  postgres::add_types(plugin);
  Job job;
  job.ns = "PG";
  job.type = "PG::Role";
  job.operation = ReadJob{std::vector<std::string>(500, std::string(4000, 'a'))};  // more than a socket holds
  const auto result = plugin.run(job, {{"dsn", "host=" + scratch.path.string() + " port=1 user=u"}}, context);
  stop.join();
  const auto& answer = std::get<ReadResult>(result).items.at(0);
  CHECK(std::get<Error>(answer).code == Errc::kCancelled);
}

TEST_CASE("SQL text that stays where it is put") {
  using postgres::is_self_contained;
  for (const std::string good :
       {"1", "now()", "'it''s; (\"x\" -- /* $1, '::text", "(a + (b)[1])", R"("odd "" ) name")", "f(1, 2)",
        "CHECK ((price > (0)::numeric))", "FOREIGN KEY (a, b) REFERENCES public.t(a, b) ON DELETE CASCADE",
        "'back\\slash'::text", "B'101'::\"bit\"", "a - (-1)"}) {
    INFO(good);
    CHECK(is_self_contained(good));
  }
  for (const std::string bad : {"", " \n", "1; 2", "1, 2", "1) + (2", "(1", "(1]", "'a", "\"a", "'a''", "1 -- ",
                                "1 /* 2", "$1", "$$a$$", "E'\\''", "e'a'", "CHECK (true), DROP COLUMN a"}) {
    INFO(bad);
    CHECK_FALSE(is_self_contained(bad));
  }
}

TEST_CASE("a column's default is an expression, or a clause") {
  using Kind = postgres::ColumnDefault::Kind;
  const auto parsed = [](const char* text) { return postgres::parse_default(text); };
  CHECK(parsed("").kind == Kind::kNone);
  CHECK(parsed("now()").kind == Kind::kExpression);
  CHECK(parsed("generated always as identity").sql == "ALWAYS");
  CHECK(parsed("generated by default as identity").sql == "BY DEFAULT");
  CHECK(parsed("generated always as ((a * 2)) stored").kind == Kind::kStored);
  CHECK(parsed("generated always as ((a * 2)) stored").sql == "(a * 2)");
  for (const char* other : {"generated", "generated always as (a)", "generated always as () stored"}) {
    CHECK(parsed(other).kind == Kind::kExpression);
  }
}

TEST_CASE("what changes is what differs between prior and desired") {
  Plugin plugin(postgres::plugin_info());
  postgres::add_types(plugin);
  const auto schema = Json::parse(plugin.manifest().types[0].schema);
  const Json prior{{"name", "app"}, {"login", true}, {"connection_limit", 5}, {"member_of", {"a"}}};
  const auto changes = [&](Json desired, const char* without = "") {
    desired.erase(without);
    return postgres::changes_of(schema, prior, desired);
  };
  Json same = prior;
  CHECK(changes(same).value() == Json::object());
  CHECK(changes(same, "login").value() == Json{{"login", false}});  // absence is the default
  CHECK(changes(same, "member_of").value() == Json{{"member_of", Json::array()}});
  same["password"] = "new";
  CHECK(changes(same).value() == Json{{"password", "new"}});
  same["createdb"] = true;
  CHECK(changes(same).value() == Json{{"password", "new"}, {"createdb", true}});
  const std::vector<std::pair<Json, std::string>> mistakes{{{{"name", "other"}}, "name"},
                                                           {{{"login", "yes"}}, "login"},
                                                           {{{"connection_limit", 1.5}}, "connection_limit"},
                                                           {{{"member_of", {7}}}, "member_of"},
                                                           {{{"unheard_of", 1}}, "unheard_of"}};
  for (const auto& [mistake, name] : mistakes) {
    Json desired = prior;
    desired.update(mistake);
    const auto result = changes(desired);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::kInvalidRequest);
    CHECK_THAT(result.error().message, Catch::Contains(name));
  }
}

TEST_CASE("what is declared is found in what is there") {
  using postgres::mismatch;
  const Json there{
      {"name", "t"},
      {"columns", {{{"name", "a"}, {"type", "integer"}, {"default", nullptr}}, {{"name", "b"}, {"type", "text"}}}},
      {"member_of", {"x", "y"}}};
  CHECK(mismatch({{"member_of", {"y", "x"}}, {"password", "canary"}}, there).empty());
  CHECK(mismatch({{"columns", {{{"name", "b"}}, {{"name", "a"}, {"default", nullptr}}}}}, there).empty());
  CHECK(mismatch({{"columns", {{{"name", "b"}}, {{"name", "a"}, {"type", "int"}}}}}, there) ==
        "columns.a.type: \"int\" is \"integer\" in the words of PostgreSQL: declare it so");
  CHECK_FALSE(mismatch({{"columns", {{{"name", "a"}}, {{"name", "c"}}}}}, there).empty());
  CHECK_FALSE(mismatch({{"member_of", {"x", "y", "x"}}}, there).empty());
}

TEST_CASE("declarations that are none are refused before any connection, and without a server nothing is known") {
  const Json nobody{{"dsn", "host=127.0.0.1 port=1 password=canary"}};
  const auto create = [&](const std::string& type, const Json& declared) {
    return std::get<Error>(run(nobody, type, CreateJob{"key", {declared.dump(), {}}, std::nullopt}));
  };
  for (const Json& declared : {Json::object(), Json{{"name", ""}}, Json{{"name", std::string(64, 'n')}},
                               Json{{"name", std::string("a\0b", 3)}}, Json{{"name", "a"}, {"login", 1}},
                               Json{{"name", "a"}, {"oid", 7}}, Json{{"name", "a"}, {"password", ""}}}) {
    INFO(declared.dump());
    CHECK(create("PG::Role", declared).code == Errc::kInvalidRequest);
  }
  const auto error = create("PG::Role", {{"name", "a"}, {"password", "secret canary"}});
  CHECK(error.code == Errc::kServiceUnavailable);
  CHECK(error_traits(error.code).retry == Retry::kYes);
  CHECK(error.message.find("canary") == std::string::npos);
  CHECK(std::get<Error>(run(nobody, "PG::Table", DeleteJob{"key", "a.b.c", {}})).code == Errc::kServiceUnavailable);
  CHECK(std::get<Error>(run(nobody, "PG::Table", DeleteJob{"key", "a.b", {}})).code == Errc::kInvalidRequest);
}
