// Secrets of declared properties: filled in by the worker, and gone in no form with what it answers.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "sdk_changes.h"

using namespace muster;
using namespace muster::test;
using muster::testing::MemoryDisk;
using muster::testing::MemoryJournal;
using muster::testing::WorkerHarness;

namespace {

/// The operations have secrets filled in that only this worker has.
struct Canary {
  static constexpr const char* kValue = "c4nary\"value";
  SecretPolicy policy{.env = {"TH_*"}, .files = {}, .secret_dir = {}};
  Document document{R"({"name":"x","password":null})", {{"/password", {{SecretPart::Kind::kEnv, "TH_SECRET"}}}}};
  Canary() { ::setenv("TH_SECRET", kValue, 1); }
  ~Canary() { ::unsetenv("TH_SECRET"); }
};

}  // namespace

TEST_CASE("secrets of declared properties are filled in where the worker runs, and leave it in no form") {
  const Canary secret;
  ChangingPlugin plugin;
  plugin.answer = [&](JobContext& context) -> Result<Mutation> {
    const Json& given = plugin.created.properties.is_object() ? plugin.created.properties : plugin.updated.desired;
    const auto password = given.at("password").get<std::string>();
    context.log().info("password is {}", password);
    if (plugin.calls == 3) return unavailable("no such password: " + password);
    if (plugin.calls == 4) throw std::runtime_error(password);
    return Mutation(
        Resource{"x", Properties{{"password", password}, {"hint", "not " + password + "!"}}, "uid " + password});
  };
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, secret.policy, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  const MutationResult done{
      MutationStatus::kSuccess, "", "x", "", R"({"hint":"not ***!","password":"***"})", Millis{0}};

  begin(worker, "a", CreateJob{"key", secret.document, {}});
  worker.run_one();
  CHECK(plugin.created.properties == Json{{"name", "x"}, {"password", Canary::kValue}});
  CHECK(std::get<MutationResult>(worker.result("a")) == done);
  CHECK(worker.logged().find("job=job-a token=a target=target password is ***") != std::string::npos);

  plugin.created = {};
  begin(worker, "b", UpdateJob{"key", "x", "{}", secret.document, "[]", {}});
  worker.run_one();
  CHECK(plugin.updated.desired == Json{{"name", "x"}, {"password", Canary::kValue}});
  CHECK(std::get<MutationResult>(worker.result("b")) == done);

  for (const char* token : {"c", "d"}) {
    begin(worker, token, UpdateJob{"key", "x", "{}", secret.document, "[]", {}});
    worker.run_one();
    CHECK(worker.failed(token).message.ends_with("***"));
  }
  CHECK(plugin.calls == 4);
  CHECK_THAT(worker.logged(), !Catch::Contains("c4nary"));
  for (const auto& message : worker.heard()) CHECK(message.data.find("c4nary") == std::string::npos);
  for (const auto& [token, file] : disk->files) CHECK(file.reply->find("c4nary") == std::string::npos);
}

TEST_CASE("what a change was given leaves its worker with no word of the plugin's health") {
  const Canary secret;
  ChangingPlugin plugin;
  std::string kept;
  plugin.answer = [&](JobContext&) -> Result<Mutation> {
    kept = plugin.created.properties.at("password").get<std::string>();
    return Mutation(Resource{"x", Properties{{"n", 1}}, "uid"});
  };
  plugin.health([&](Context&) -> Result<void> {
    if (kept.empty()) return {};
    return unavailable("refused: " + kept);
  });
  WorkerHarness worker(plugin, 2, secret.policy, std::make_shared<MemoryJournal>(std::make_shared<MemoryDisk>()));
  worker.start_accepted();
  worker.run_life();
  begin(worker, "a", CreateJob{"key", secret.document, {}});
  worker.run_one();
  REQUIRE(kept == Canary::kValue);
  worker.advance(Millis{10'000});
  worker.run_life();
  CHECK(worker.heartbeats().back().health == "refused: ***");
  for (const auto& message : worker.heard()) CHECK(message.data.find("c4nary") == std::string::npos);
}

TEST_CASE("the secrets of a change are remembered for a minute, also where another has others") {
  const Canary secret;
  ChangingPlugin plugin;
  std::vector<std::string> kept;
  plugin.answer = [&](JobContext&) -> Result<Mutation> {
    kept.push_back(plugin.created.properties.at("password").get<std::string>());
    return conflict("no");
  };
  plugin.health([&](Context&) -> Result<void> {
    if (kept.empty()) return {};
    return unavailable(kept.front());
  });
  WorkerHarness worker(plugin, 2, secret.policy);
  worker.start_accepted();
  worker.run_life();
  begin(worker, "a", CreateJob{"key", secret.document, {}});
  worker.run_one();
  for (int i = 0; i < 5; ++i) {
    worker.advance(Millis{10'000});
    worker.run_life();
  }
  ::setenv("TH_SECRET", "c4nary-other", 1);
  begin(worker, "b", CreateJob{"key", secret.document, {}});
  worker.run_one();
  REQUIRE(kept == std::vector<std::string>{Canary::kValue, "c4nary-other"});
  worker.advance(Millis{10'000});
  worker.run_life();
  worker.advance(Millis{1000});
  CHECK(worker.heartbeats().back().health == "***");
}

TEST_CASE("the secrets of the last 256 changes are remembered, and no more than these") {
  const Canary secret;
  ChangingPlugin plugin;
  std::vector<std::string> kept;
  plugin.answer = [&](JobContext&) -> Result<Mutation> {
    kept.push_back(plugin.created.properties.at("password").get<std::string>());
    return conflict("no");
  };
  plugin.health([&](Context&) -> Result<void> {
    if (kept.empty()) return {};
    return unavailable(kept.at(0) + " " + kept.at(1) + " " + kept.back());
  });
  WorkerHarness worker(plugin, 2, secret.policy);
  worker.start_accepted();
  worker.run_life();
  for (int i = 100; i < 357; ++i) {
    ::setenv("TH_SECRET", ("c4nary-" + std::to_string(i)).c_str(), 1);
    begin(worker, "t" + std::to_string(i), CreateJob{"key", secret.document, {}});
    worker.run_one();
  }
  REQUIRE(kept.size() == 257);
  worker.advance(Millis{10'000});
  worker.run_life();
  CHECK(worker.heartbeats().back().health == "c4nary-100 *** ***");
}

TEST_CASE("a secret that may not be used keeps a change from being begun") {
  const Canary secret;
  ChangingPlugin plugin;
  SecretPolicy policy = secret.policy;
  Document document = secret.document;
  Errc expected = Errc::kAccessDenied;
  SECTION("not allowed") {
    policy.env.clear();
  }
  SECTION("not set") {
    document.secrets.front().parts.front().text = "TH_UNSET";
  }
  SECTION("a value in its place") {
    document.json = R"({"password":"text"})";
    expected = Errc::kInvalidRequest;
  }
  SECTION("no JSON") {
    document.json = R"({"password":)";
    expected = Errc::kInvalidRequest;
  }
  SECTION("not UTF-8") {
    ::setenv("TH_SECRET", "bytes \xff", 1);
    expected = Errc::kInvalidRequest;
  }
  const auto disk = std::make_shared<MemoryDisk>();
  WorkerHarness worker(plugin, 2, policy, std::make_shared<MemoryJournal>(disk));
  worker.start_accepted();
  begin(worker, "a", CreateJob{"key", document, {}});
  worker.run_one();
  CHECK(worker.failed("a").code == expected);
  CHECK(plugin.calls == 0);
  CHECK(disk->files.empty());
  CHECK_FALSE(worker.last_reply_of(reply_subject(worker, "a")).empty());  // it is told until it is heard
}

TEST_CASE("an id with a secret in it is not altered and does not leave, unless the job itself names it") {
  const Canary secret;
  // JSON spells only one of them as it is.
  const std::string value = GENERATE(as<std::string>{}, Canary::kValue, "c4nary");
  ::setenv("TH_SECRET", value.c_str(), 1);
  ChangingPlugin plugin;
  WorkerHarness worker(plugin, 2, secret.policy);
  worker.start_accepted();
  const auto run = [&](const std::string& token, const JobOperation& operation, Result<Mutation> answer) {
    plugin.answer = [&](JobContext&) { return answer; };
    begin(worker, token, operation);
    worker.run_one();
    return worker.result(token);
  };
  const std::string id = "user:" + value;
  for (const auto& answer :
       {Mutation(Resource{id}), Mutation::in_progress("r-" + id), Mutation::in_progress("r", id)}) {
    const auto result = run("a" + std::to_string(plugin.calls), CreateJob{"key", secret.document, {}}, answer);
    const Error error = std::get<Error>(result);
    CHECK(error_traits(error.code).applied == Applied::kUnknown);
    CHECK_THAT(error.message, Catch::Contains("contains a secret") && !Catch::Contains("c4nary"));
  }
  const auto updated =
      run("b", UpdateJob{"key", id, "{}", secret.document, "[]", {}}, Mutation(Resource{id, Properties{}, ""}));
  CHECK(std::get<MutationResult>(updated).native_id == id);
  ::setenv("TH_SECRET", "alice", 1);
  Document named = secret.document;
  named.json = R"({"name":"alice","password":null})";
  const auto created = run("c", CreateJob{"key", named, {}}, Mutation(Resource{"alice", Properties{}, ""}));
  CHECK(std::get<MutationResult>(created).native_id == "alice");
  const auto child =
      run("d", CreateJob{"key", secret.document, Parent{"TH::Thing", "alice"}}, Mutation(Resource{"alice/child"}));
  CHECK(std::get<MutationResult>(child).native_id == "alice/child");
}
