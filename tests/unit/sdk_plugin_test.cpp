#include <catch2/catch.hpp>

#include <cerrno>
#include <stdexcept>

#include <spdlog/logger.h>

#include "muster/worker.h"
#include "worker_sdk/testing/fake_context.h"

using namespace muster;
using muster::testing::FakeContext;

namespace {

using Operation = muster::Operation;

Job job_of(JobOperation operation, std::string type = "TH::Thing") {
  Job job;
  job.id = JobId("j");
  job.type = std::move(type);
  job.operation = std::move(operation);
  return job;
}

JobResult run(const Plugin& plugin, JobOperation operation, std::string type = "TH::Thing") {
  FakeContext context;
  return plugin.run(job_of(std::move(operation), std::move(type)), Json::object(), context);
}

Error failed(const JobResult& result) {
  return std::get<Error>(result);
}

PluginInfo info() {
  return {.name = "things", .ns = "TH", .version = "1.0.0"};
}

/// What a page or a resource that a plugin gives leads to.
JobResult listed(ListPage page, ListGives gives = ListGives::kProperties) {
  Plugin plugin(info());
  plugin.type({.name = "TH::Thing", .list_gives = gives}).list([&](const ListRequest&, JobContext&) {
    return Result<ListPage>(page);
  });
  return run(plugin, ListJob{});
}

JobResult read(const std::vector<Result<Resource>>& answers, std::vector<std::string> ids) {
  Plugin plugin(info());
  plugin.type({.name = "TH::Thing"}).read_many([&](const ReadManyRequest&, JobContext&) { return answers; });
  return run(plugin, ReadJob{std::move(ids)});
}

Resource resource(std::string native_id, Properties properties = {}, std::string uid = {}) {
  return {std::move(native_id), std::move(properties), std::move(uid)};
}

}  // namespace

TEST_CASE("properties are one canonical JSON object") {
  CHECK(Properties().text() == "{}");
  CHECK(Properties{{"b", 1}, {"a", "x"}}.text() == R"({"a":"x","b":1})");
  CHECK(Properties{{"only", nullptr}}.text() == R"({"only":null})");
  CHECK(Properties{{"list", Json::array({1, "two"})}}.text() == R"({"list":[1,"two"]})");
  const Json json = Json::parse(R"({ "z" : {"b":1, "a":[ ]}, "é":"ü" })");
  CHECK(Properties(json).text() == R"({"z":{"a":[],"b":1},"é":"ü"})");
  CHECK(Properties{json} == Properties(json));
  CHECK(Properties(json).json() == json);
  CHECK(Properties::from_canonical(R"({"a":1})") == Properties{{"a", 1}});
  CHECK_THROWS_AS(Properties(Json::array()), std::invalid_argument);
  CHECK_THROWS_AS(Properties({Json("a"), Json("b")}), std::invalid_argument);
  CHECK_THROWS_AS((Properties{{"name", "bytes \xff"}}), Json::exception);
}

TEST_CASE("a text that is declared as null is none") {
  const Json declared{{"name", "x"}, {"text", nullptr}, {"size", 3}};
  CHECK(text_of(declared, "name").value() == "x");
  CHECK(text_of(declared, "text").value().empty());
  CHECK(text_of(declared, "other").value().empty());
  CHECK(text_of(declared, "size").error().code == Errc::kInvalidRequest);
}

TEST_CASE("percent_encode makes any bytes UTF-8, and can be undone") {
  for (const std::string name : {"", "plain", "with space", "ünïcödé", "100%", "%", "%4"}) {
    CHECK(percent_encode(name) == name);
    CHECK(percent_decode(name) == name);
  }
  CHECK(percent_encode("%41") == "%2541");
  CHECK(percent_encode("a\xff"
                       "b") == "a%FFb");
  CHECK(percent_encode("\xc3") == "%C3");
  CHECK(percent_encode("\xed\xa0\x80") == "%ED%A0%80");
  for (int first = 0; first < 256; ++first) {
    for (const char* rest : {"", "A", "41", "%", "%4", "%41", "\xff", "\x80\x80", "\xbb"}) {
      const std::string bytes = static_cast<char>(first) + std::string(rest);
      CHECK(percent_decode(percent_encode(bytes)) == bytes);
      CHECK(percent_decode(percent_encode("%" + bytes)) == "%" + bytes);
    }
  }
}

TEST_CASE("errno becomes a code of the protocol") {
  CHECK(from_errno(ENOENT, "open /x").code == Errc::kNotFound);
  CHECK(from_errno(ENOENT, "open /x").message == "open /x: No such file or directory");
  CHECK(from_errno(EEXIST, "").code == Errc::kAlreadyExists);
  CHECK(from_errno(EINVAL, "").code == Errc::kInvalidRequest);
  CHECK(from_errno(EACCES, "").code == Errc::kAccessDenied);
  CHECK(from_errno(EPERM, "").code == Errc::kAccessDenied);
  CHECK(from_errno(EMFILE, "").code == Errc::kThrottling);
  CHECK(from_errno(EBUSY, "").code == Errc::kConflict);
  CHECK(from_errno(ENOSPC, "").code == Errc::kLimit);
  CHECK(from_errno(EDQUOT, "").code == Errc::kLimit);
  CHECK(from_errno(EIO, "").code == Errc::kInternalFailure);
}

TEST_CASE("the manifest follows from what is given") {
  Plugin plugin({.name = "things", .ns = "TH", .version = "1.0.0", .description = "Things", .label_query = "$.name"});
  plugin.type({.name = "TH::Box"})
      .list([](const ListRequest&, JobContext&) { return Result<ListPage>(ListPage{}); })
      .read([](const ReadRequest&, JobContext&) { return Result<Resource>(not_found()); });
  plugin
      .type({.name = "TH::Thing",
             .parent = "TH::Box",
             .parent_parameters = {{"box", "name"}},
             .list_gives = ListGives::kProperties})
      .list([](const ListRequest&, JobContext&) { return Result<ListPage>(ListPage{}); });
  const Manifest manifest = plugin.manifest();
  CHECK(manifest.plugin == "things");
  CHECK(manifest.ns == "TH");
  CHECK(manifest.label_query == "$.name");
  REQUIRE(manifest.types.size() == 2);
  CHECK(manifest.types[0].operations == std::vector{Operation::kList, Operation::kRead});
  CHECK(manifest.types[1].operations == std::vector{Operation::kList});
  CHECK(manifest.types[1].parent == "TH::Box");
}

TEST_CASE("a plugin that contradicts itself is told when it starts") {
  const auto list = [](const ListRequest&, JobContext&) { return Result<ListPage>(ListPage{}); };
  const auto read_nothing = [](const ReadRequest&, JobContext&) { return Result<Resource>(not_found()); };
  const auto throws = [](Plugin& plugin) { CHECK_THROWS_AS(plugin.manifest(), std::logic_error); };
  Plugin plugin(info());
  SECTION("a type of another namespace") {
    plugin.type({.name = "OTHER::Thing"}).read(read_nothing);
  }
  SECTION("no function") {
    plugin.type({.name = "TH::Thing"});
  }
  SECTION("ids only, and no read") {
    plugin.type({.name = "TH::Thing"}).list(list);
  }
  SECTION("twice the same type") {
    plugin.type({.name = "TH::Thing"}).read(read_nothing);
    plugin.type({.name = "TH::Thing"}).read(read_nothing);
  }
  SECTION("an unknown parent") {
    plugin.type({.name = "TH::Thing", .parent = "TH::Box"}).read(read_nothing);
  }
  SECTION("parents in a circle") {
    plugin.type({.name = "TH::A", .parent = "TH::B"}).read(read_nothing);
    plugin.type({.name = "TH::B", .parent = "TH::A"}).read(read_nothing);
  }
  SECTION("a schema that is no JSON") {
    plugin.type({.name = "TH::Thing", .schema = "{"}).read(read_nothing);
  }
  SECTION("an example that is no object") {
    plugin.type({.name = "TH::Thing", .examples = {"1"}}).read(read_nothing);
  }
  throws(plugin);
  Plugin unnamed({.name = "things", .ns = "no namespace", .version = "1.0.0"});
  throws(unnamed);
  Plugin unversioned({.name = "things", .ns = "TH", .version = "1"});
  throws(unversioned);
}

TEST_CASE("a type may be its own parent") {
  Plugin plugin(info());
  plugin.type({.name = "TH::Dir", .parent = "TH::Dir"}).read([](const ReadRequest&, JobContext&) {
    return Result<Resource>(not_found());
  });
  CHECK(plugin.manifest().types.size() == 1);
}

TEST_CASE("list gets its page and its parent, and its items come back checked") {
  Plugin plugin(info());
  ListRequest seen;
  plugin.type({.name = "TH::Thing"}).list([&](const ListRequest& request, JobContext& context) -> Result<ListPage> {
    seen = request;
    context.count_calls(2);
    ListPage page;
    page.items = {resource("a"), resource("b", {{"n", 1}}, "uid")};
    page.next_page_token = "next";
    page.problems = {{"c \xff", throttled("slow \xff down", Millis{5})}};
    page.skipped = 3;
    return page;
  });
  FakeContext context;
  const auto result =
      plugin.run(job_of(ListJob{Parent{"TH::Box", "box", R"({"k":"v"})"}, "token", 10}), Json{{"url", "x"}}, context);
  CHECK(seen.type == "TH::Thing");
  CHECK(seen.target.config == Json{{"url", "x"}});
  CHECK(seen.parent->native_id == "box");
  CHECK(seen.parent->parameters == Json{{"k", "v"}});
  CHECK(seen.page_token == "token");
  CHECK(seen.page_size == 10);
  CHECK(context.calls() == 2);
  const auto& page = std::get<ListResult>(result);
  CHECK(page.items == std::vector<Item>{{"a", "", ""}, {"b", "uid", R"({"n":1})"}});
  CHECK(page.next_page_token == "next");
  CHECK(page.skipped == 3);
  REQUIRE(page.problems.size() == 1);
  CHECK(page.problems.front().native_id == "c %FF");
  CHECK(page.problems.front().failure.message == "slow %FF down");
  CHECK(page.problems.front().failure.retry_after == Millis{5});
}

TEST_CASE("a listing that breaks the contract fails the job and names plugin, type and job") {
  ListPage page;
  SECTION("no id") {
    page.items = {resource("")};
  }
  SECTION("an id of over 16 KiB") {
    page.items = {resource(std::string(16 * 1024 + 1, 'x'))};
  }
  SECTION("an id that is not UTF-8") {
    page.items = {resource("\xff")};
  }
  SECTION("an id twice") {
    page.items = {resource("a"), resource("b"), resource("a")};
  }
  SECTION("a uid that is not UTF-8") {
    page.items = {resource("a", {}, "\xff")};
  }
  SECTION("properties that are no object") {
    page.items = {resource("a", Properties::from_canonical("[1]"))};
  }
  SECTION("properties that end early") {
    page.items = {resource("a", Properties::from_canonical(R"({"a":1)"))};
  }
  SECTION("properties that are not UTF-8") {
    page.items = {resource("a", Properties::from_canonical("{\"a\":\"\xff\"}"))};
  }
  SECTION("a page token of over 16 KiB") {
    page.next_page_token = std::string(16 * 1024 + 1, 'x');
  }
  const Error error = failed(listed(page));
  CHECK(error.code == Errc::kInternalFailure);
  CHECK_THAT(error.message, Catch::StartsWith("plugin things, list TH::Thing, job j: contract: "));
}

TEST_CASE("bounds themselves are within the contract, and large properties are the coordinator's to judge") {
  ListPage page;
  page.items = {resource(std::string(16 * 1024, 'x')), resource("big", {{"text", std::string(300 * 1024, 'x')}})};
  page.next_page_token = std::string(16 * 1024, 'x');
  CHECK(std::get<ListResult>(listed(page)).items.size() == 2);
  page.items = {resource("a")};
  CHECK(std::get<ListResult>(listed(page, ListGives::kProperties)).items.front().properties == "{}");
  CHECK(std::get<ListResult>(listed(page, ListGives::kIds)).items.front().properties.empty());
}

TEST_CASE("a read answers each id in its order") {
  const auto result = read({Result<Resource>(resource("", {{"n", 1}})), Result<Resource>(not_found("none")),
                            Result<Resource>(resource("c"))},
                           {"a", "b", "c"});
  const auto& items = std::get<ReadResult>(result).items;
  REQUIRE(items.size() == 3);
  CHECK(std::get<Item>(items[0]) == Item{"a", "", R"({"n":1})"});
  CHECK(std::get<Error>(items[1]) == not_found("none"));
  CHECK(std::get<Item>(items[2]) == Item{"c", "", "{}"});
}

TEST_CASE("what a plugin says of a failure is what may travel") {
  Error strange{.code = Errc::kMalformed, .message = "no JSON", .retry_after = Millis{-5}};
  const auto result = read({Result<Resource>(strange)}, {"a"});
  const Error told = std::get<Error>(std::get<ReadResult>(result).items.front());
  CHECK(told.code == Errc::kInternalFailure);  // the other stays in one process
  CHECK(told.retry_after == Millis{0});
  CHECK(told.message == "no JSON");
}

TEST_CASE("a read that breaks the contract fails the job") {
  CHECK_THAT(failed(read({}, {"a"})).message, Catch::Contains("contract: 1 ids to read, 0 answers"));
  CHECK_THAT(failed(read({Result<Resource>(resource("b"))}, {"a"})).message, Catch::Contains("contract: "));
}

TEST_CASE("a read of many ids ends early when it is stopped") {
  Plugin plugin(info());
  FakeContext context;
  int reads = 0;
  plugin.type({.name = "TH::Thing"}).read([&](const ReadRequest&, JobContext&) -> Result<Resource> {
    if (++reads == 2) context.stop();
    return not_found();
  });
  const auto result = plugin.run(job_of(ReadJob{{"a", "b", "c", "d"}}), Json::object(), context);
  CHECK(reads == 2);
  CHECK(std::get<ReadResult>(result).items.size() == 4);
}

TEST_CASE("what a plugin does not have is UNSUPPORTED") {
  Plugin plugin(info());
  plugin.type({.name = "TH::Thing"}).read([](const ReadRequest&, JobContext&) {
    return Result<Resource>(not_found());
  });
  CHECK(failed(run(plugin, ListJob{})).code == Errc::kUnsupported);
  CHECK(failed(run(plugin, ReadJob{{"a"}}, "TH::Other")).code == Errc::kUnsupported);
  CHECK(failed(run(plugin, DeleteJob{})).code == Errc::kUnsupported);
  CHECK(std::get<InspectResult>(run(plugin, InspectJob{}, "")) == InspectResult{});
}

TEST_CASE("changes get what the job says, and their answers come back checked") {
  Plugin plugin(info());
  CreateRequest created;
  UpdateRequest updated;
  DeleteRequest removed;
  StatusRequest asked;
  plugin.type({.name = "TH::Thing"})
      .read([](const ReadRequest&, JobContext&) { return Result<Resource>(not_found()); })
      .create([&](const CreateRequest& request, JobContext&) -> Result<Mutation> {
        created = request;
        return Mutation::in_progress("request", {}, Millis{-5});
      })
      .update([&](const UpdateRequest& request, JobContext&) -> Result<Mutation> {
        updated = request;
        return Mutation(resource("", {{"n", 2}}, "uid"));
      })
      .remove([&](const DeleteRequest& request, JobContext&) -> Result<Mutation> {
        removed = request;
        return not_found("gone already");
      })
      .status([&](const StatusRequest& request, JobContext&) -> Result<Mutation> {
        asked = request;
        if (request.request_id == "slow") return Mutation::in_progress("slow", "made", Millis{700});
        return Mutation(resource("made"));
      });
  using Status = MutationStatus;

  CHECK(std::get<MutationResult>(
            run(plugin, CreateJob{"key", {R"({"a":1})", {}}, Parent{"TH::Box", "box", R"({"k":"v"})"}})) ==
        MutationResult{Status::kInProgress, "request", "", "", "", Millis{0}});
  CHECK(created.properties == Json{{"a", 1}});
  CHECK(created.idempotency_key == "key");
  CHECK(created.parent->native_id == "box");
  CHECK(created.parent->parameters == Json{{"k", "v"}});

  CHECK(std::get<MutationResult>(
            run(plugin, UpdateJob{"key", "x", R"({"n":1})", {R"({"n":2})", {}}, "[]", {"u", "h"}})) ==
        MutationResult{Status::kSuccess, "", "x", "uid", R"({"n":2})", Millis{0}});
  CHECK(updated.prior == Json{{"n", 1}});
  CHECK(updated.desired == Json{{"n", 2}});
  CHECK(updated.patch == Json::array());
  CHECK(updated.precondition == Precondition{"u", "h"});

  CHECK(std::get<MutationResult>(run(plugin, DeleteJob{"key", "x", {"u", ""}})) ==
        MutationResult{Status::kSuccess, "", "x", "", "", Millis{0}});  // what is not there is deleted
  CHECK(removed.precondition == Precondition{"u", ""});

  CHECK(std::get<MutationResult>(run(plugin, StatusJob{"request", ""})) ==
        MutationResult{Status::kSuccess, "", "made", "", "{}", Millis{0}});
  CHECK(asked.request_id == "request");
  CHECK(std::get<MutationResult>(run(plugin, StatusJob{"slow", "made"})) ==
        MutationResult{Status::kInProgress, "slow", "made", "", "", Millis{700}});
}

TEST_CASE("a change may be answered with what was read of it, or with how that failed") {
  for (const bool there : {true, false}) {
    Plugin plugin(info());
    plugin.type({.name = "TH::Thing"})
        .read([](const ReadRequest&, JobContext&) { return Result<Resource>(not_found()); })
        .update([&](const UpdateRequest&, JobContext&) {
          return Mutation::of(there ? Result<Resource>(resource("x", {{"n", 2}}, "uid")) : not_found("gone"));
        });
    const auto result = run(plugin, UpdateJob{"key", "x", "{}", {R"({"n":2})", {}}, "[]", {}});
    if (there) {
      CHECK(std::get<MutationResult>(result) ==
            MutationResult{MutationStatus::kSuccess, "", "x", "uid", R"({"n":2})", Millis{0}});
    } else {
      CHECK(failed(result).code == Errc::kNotFound);
    }
  }
}

TEST_CASE("a change that breaks the contract fails the job, and nobody takes it for not done") {
  std::optional<Mutation> answer;
  bool status = true;
  JobOperation operation = CreateJob{"key", {}, {}};
  SECTION("success without id") {
    answer = Mutation(resource(""));
  }
  SECTION("deleted, where an object was to be made") {
    answer = Mutation::deleted();
  }
  SECTION("deleted, where an object was to be changed") {
    operation = UpdateJob{"key", "x", "{}", {}, "[]", {}};
    answer = Mutation::deleted();
  }
  SECTION("another id than was asked for") {
    operation = UpdateJob{"key", "x", "{}", {}, "[]", {}};
    answer = Mutation(resource("y"));
  }
  SECTION("another id while in progress") {
    operation = DeleteJob{"key", "x", {}};
    answer = Mutation::in_progress("request", "y");
  }
  SECTION("in progress, and nobody can be asked") {
    status = false;
    answer = Mutation::in_progress("request");
  }
  SECTION("in progress without request id") {
    answer = Mutation::in_progress("");
  }
  SECTION("a request id that is not UTF-8") {
    answer = Mutation::in_progress("\xff");
  }
  SECTION("an id of over 16 KiB while in progress") {
    answer = Mutation::in_progress("request", std::string(16 * 1024 + 1, 'x'));
  }
  SECTION("properties that are no JSON") {
    answer = Mutation(resource("x", Properties::from_canonical("{no JSON}")));
  }
  SECTION("properties that are no object") {
    answer = Mutation(resource("x", Properties::from_canonical("[1]")));
  }
  SECTION("an id of over 16 KiB") {
    answer = Mutation(resource(std::string(16 * 1024 + 1, 'x')));
  }
  Plugin plugin(info());
  Type& type = plugin.type({.name = "TH::Thing"});
  type.create([&](const CreateRequest&, JobContext&) { return Result<Mutation>(*answer); })
      .update([&](const UpdateRequest&, JobContext&) { return Result<Mutation>(*answer); })
      .remove([&](const DeleteRequest&, JobContext&) { return Result<Mutation>(*answer); });
  if (status) type.status([&](const StatusRequest&, JobContext&) { return Result<Mutation>(*answer); });
  const Error error = failed(run(plugin, operation));
  CHECK(error.code == Errc::kInternalFailure);
  CHECK(error_traits(error.code).applied == Applied::kUnknown);
  CHECK_THAT(error.message, Catch::StartsWith("plugin things, ") && Catch::Contains(" TH::Thing, job j: contract: "));
}

TEST_CASE("a precondition holds for the object that it names, in the state that it names") {
  const Resource thing = resource("x", {{"n", 1}}, "uid");
  CHECK_FALSE(violates({}, thing));
  CHECK_FALSE(violates({"uid", ""}, thing));
  CHECK(violates({"other", ""}, thing));
  CHECK(violates({"", std::string(32, '0')}, thing));
  // XXH3-128 of {"n":1}
  CHECK_FALSE(violates({"uid", "8c507128b18ed42e233a7f8562048fe7"}, thing));
}

TEST_CASE("inspect gives system, filters and types") {
  Plugin plugin(info());
  plugin.type({.name = "TH::Thing"}).read([](const ReadRequest&, JobContext&) {
    return Result<Resource>(not_found());
  });
  Inspection inspection{
      .system = "machine", .filters = {{{"TH::Thing"}, {}, FilterAction::kExclude}}, .types = {"TH::Thing"}};
  plugin.inspect([&](const InspectRequest&, JobContext&) { return Result<Inspection>(inspection); });
  const auto result = std::get<InspectResult>(run(plugin, InspectJob{}, ""));
  CHECK(result.system == "machine");
  CHECK(result.filters == inspection.filters);
  CHECK(result.types == inspection.types);
  inspection.types = {"TH::Unknown"};
  CHECK_THAT(failed(run(plugin, InspectJob{}, "")).message, Catch::Contains("contract: "));
  inspection.types.clear();
  for (const auto& system : {std::string(4097, 'x'), std::string("\xff")}) {
    inspection.system = system;
    CHECK_THAT(failed(run(plugin, InspectJob{}, "")).message, Catch::Contains("contract: system"));
  }
}

TEST_CASE("whatever a plugin throws is an INTERNAL_FAILURE") {
  Plugin plugin(info());
  plugin.type({.name = "TH::Thing"}).read([](const ReadRequest& request, JobContext&) -> Result<Resource> {
    if (request.native_id == "int") throw 1;
    throw std::runtime_error("bytes \xff");
  });
  CHECK(failed(run(plugin, ReadJob{{"int"}})).code == Errc::kInternalFailure);
  const Error error = failed(run(plugin, ReadJob{{"text"}}));
  CHECK(error.code == Errc::kInternalFailure);
  CHECK_THAT(error.message, Catch::EndsWith("bytes %FF"));
}

TEST_CASE("list_all follows page tokens to the end") {
  Plugin plugin(info());
  plugin.type({.name = "TH::Thing"}).list([](const ListRequest& request, JobContext&) -> Result<ListPage> {
    ListPage page;
    const int begin = request.page_token.empty() ? 0 : std::stoi(request.page_token);
    for (int i = begin; i < std::min(begin + 2, 5); ++i) page.items.push_back(resource(std::to_string(i)));
    if (begin + 2 < 5) page.next_page_token = std::to_string(begin + 2);
    page.skipped = 1;
    return page;
  });
  const ListResult all = muster::testing::list_all(plugin, "TH::Thing", Json::object());
  CHECK(all.items.size() == 5);
  CHECK(all.skipped == 3);
  CHECK_THROWS(muster::testing::list_all(plugin, "TH::Unknown", Json::object()));
}

TEST_CASE("a list always knows how much is wanted") {
  Plugin plugin(info());
  std::vector<std::uint32_t> wanted;
  plugin.type({.name = "TH::Thing", .list_gives = ListGives::kProperties})
      .list([&](const ListRequest& request, JobContext&) {
        wanted.push_back(request.page_size);
        return Result<ListPage>(ListPage{});
      });
  run(plugin, ListJob{.parent = {}, .page_token = {}, .page_size = 7});
  run(plugin, ListJob{});
  CHECK(wanted == std::vector<std::uint32_t>{7, 100});
}

TEST_CASE("authors call the functions of their plugin's life without a worker") {
  Plugin plugin(info());
  muster::testing::FakeInitializeContext initialize;
  FakeContext context;
  CHECK(plugin.run_initialize(initialize));
  CHECK(plugin.run_health(context));
  CHECK(plugin.run_cleanup(context));

  initialize.variables["TH_URL"] = "http://things";
  initialize.credentials["TH_TOKEN"] = "s3cret";
  plugin.initialize([](InitializeContext& given) -> Result<void> {
    given.log().info("url {}", given.env("TH_URL").value_or("unset"));
    if (given.env("TH_UNSET")) return invalid_request("TH_UNSET");
    if (given.credential("TH_TOKEN").value() != "s3cret") return invalid_request("TH_TOKEN");
    auto other = given.credential("TH_OTHER");
    if (!other) return other.error();
    return {};
  });
  plugin.health([](Context& given) -> Result<void> {
    if (given.stop_token().stop_requested()) return failure(Errc::kCancelled, "stopped");
    return {};
  });
  plugin.cleanup([](Context&) { throw std::runtime_error("the floor is lava"); });
  CHECK(plugin.run_initialize(initialize).error().message == "no credential TH_OTHER");
  CHECK(initialize.logged() == "info url http://things\n");
  initialize.credentials["TH_OTHER"] = "s3cret, too";
  CHECK(plugin.run_initialize(initialize));
  CHECK(plugin.run_health(context));
  context.stop();
  CHECK(plugin.run_health(context).error().code == Errc::kCancelled);
  CHECK(plugin.run_cleanup(context).error().message == "plugin things, cleanup: the floor is lava");
}
