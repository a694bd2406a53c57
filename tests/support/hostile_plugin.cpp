// A plugin that breaks its contract, in the way that the target's config names as `behaviour`; or nearly keeps it.

#include <spdlog/logger.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "muster/worker.h"

namespace {

using muster::JobContext;
using muster::Json;
using muster::ListPage;
using muster::ListRequest;
using muster::Properties;
using muster::ReadRequest;
using muster::Resource;
using muster::Result;
using namespace std::chrono_literals;

Resource thing(const std::string& id) {
  return {.native_id = id, .properties = {{"name", id}}};
}

/// A page of one good thing and one with this for properties.
ListPage with_properties(const std::string& text) {
  return {.items = {thing("good"), {.native_id = "bad", .properties = Properties::from_canonical(text)}}};
}

ListPage with_id(const std::string& id) {
  return {.items = {thing("good"), thing(id)}};
}

/// Sleeps for good, whatever anybody wants.
void hang() {
  for (;;) std::this_thread::sleep_for(1h);
}

void write_much() {
  for (int i = 0; i < 2000; ++i) std::puts("HOSTILE plugin code on stdout: \xff \x1b[31m {\"json\":\"or not\"}");
  std::fwrite("a line without an end\0", 1, 22, stdout);
  std::fflush(stdout);
}

int page_of(const ListRequest& request) {
  return request.page_token.empty() ? 0 : std::stoi(request.page_token);
}

using List = std::function<Result<ListPage>(const ListRequest&)>;

/// What comes back is wrong.
const std::map<std::string, List> kWrongAnswers{
    {"good", [](const auto&) { return ListPage{.items = {thing("good")}}; }},
    {"broken-json", [](const auto&) { return with_properties(R"({"name":})"); }},
    {"deep-json",
     [](const auto&) {
       return with_properties(R"({"name":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}");
     }},
    {"array", [](const auto&) { return with_properties("[1,2]"); }},
    {"not-utf8", [](const auto&) { return with_properties("{\"name\":\"\xff\"}"); }},
    {"huge", [](const auto&) { return with_properties(R"({"name":")" + std::string(5 << 20, 'x') + R"("})"); }},
    {"no-id", [](const auto&) { return with_id(""); }},
    {"long-id", [](const auto&) { return with_id(std::string(20'000, 'i')); }},
    {"id-not-utf8", [](const auto&) { return with_id("\xc3\x28"); }},
    {"twice-in-page",
     [](const auto&) {
       return ListPage{.items = {thing("good"), thing("b"), thing("b")}};
     }},
    {"no-read", [](const auto&) { return ListPage{.items = {{.native_id = "unknown"}}}; }},
    {"read-other", [](const auto&) { return ListPage{.items = {{.native_id = "other"}}}; }},
    {"read-throws", [](const auto&) { return ListPage{.items = {{.native_id = "throws"}}}; }},
    {"long-message",
     [](const auto&) -> Result<ListPage> { return muster::access_denied("long \xff " + std::string(300'000, 'm')); }},
    {"unknown-code",
     [](const auto&) -> Result<ListPage> { return muster::failure(static_cast<muster::Errc>(999), "code 999"); }},
};

/// Pages follow each other in a wrong way.
const std::map<std::string, List> kWrongPages{
    {"twice-across-pages",
     [](const ListRequest& request) {
       return request.page_token.empty() ? ListPage{.items = {thing("a"), thing("b")}, .next_page_token = "2"}
                                         : ListPage{.items = {thing("b"), thing("c")}};
     }},
    {"endless-pages",
     [](const ListRequest& request) {
       ListPage page{.next_page_token = std::to_string(page_of(request) + 1)};
       if (request.page_token.empty()) page.items.push_back(thing("good"));
       return page;
     }},
    {"endless-things",
     [](const ListRequest& request) {
       std::this_thread::sleep_for(20ms);
       const auto next = std::to_string(page_of(request) + 1);
       return ListPage{.items = {thing("thing-" + next)}, .next_page_token = next};
     }},
    {"same-token",
     [](const ListRequest& request) {
       return request.page_token.empty() ? ListPage{.items = {thing("a")}, .next_page_token = "again"}
                                         : ListPage{.items = {thing("b")}, .next_page_token = "again"};
     }},
    {"long-token",
     [](const auto&) { return ListPage{.items = {thing("a")}, .next_page_token = std::string(20'000, 't')}; }},
    {"changing-ids",
     [](const ListRequest& request) {
       static std::atomic<int> number = 0;
       ListPage page{.next_page_token = page_of(request) < 4 ? std::to_string(page_of(request) + 1) : ""};
       for (int i = 0; i < 3; ++i) page.items.push_back({.native_id = "passing-" + std::to_string(++number)});
       return page;
     }},
};

/// The process itself is attacked.
const std::map<std::string, List> kViolence{
    {"throw", [](const auto&) -> Result<ListPage> { throw std::runtime_error("thrown by plugin code"); }},
    {"throw-int", [](const auto&) -> Result<ListPage> { throw 42; }},
    {"hang",
     [](const auto&) {
       hang();
       return ListPage{};
     }},
    {"exit",
     [](const auto&) {
       std::exit(3);
       return ListPage{};
     }},
    {"abort",
     [](const auto&) {
       std::abort();
       return ListPage{};
     }},
    {"late-abort",  // the job has been accepted by then
     [](const auto&) {
       std::this_thread::sleep_for(300ms);
       std::abort();
       return ListPage{};
     }},
    {"threads",
     [](const auto&) {
       for (int i = 0; i < 8; ++i) std::thread(hang).detach();
       return ListPage{.items = {thing("good")}};
     }},
    {"stdout",
     [](const auto&) {
       write_much();
       return ListPage{.items = {thing("good")}};
     }},
    {"stdout-closed",
     [](const auto&) {
       std::fclose(stdout);
       std::fclose(stdin);
       return ListPage{.items = {thing("good")}};
     }},
};

/// What leaves the worker where plugin code is careless with `secret` of the config.
const std::map<std::string, List> kIndiscretion{
    {"tell-length",
     [](const ListRequest& request) {
       const auto secret = request.target.config.at("secret").get<std::string>();
       return ListPage{.items = {{.native_id = "length", .properties = {{"length", secret.size()}}}}};
     }},
    {"tell-message",
     [](const ListRequest& request) -> Result<ListPage> {
       return muster::access_denied("login failed for " + request.target.config.at("secret").get<std::string>());
     }},
    {"tell-config",
     [](const ListRequest& request) -> Result<ListPage> {
       return muster::access_denied("cannot use " + request.target.config.dump());
     }},
    {"tell-exception",
     [](const ListRequest& request) -> Result<ListPage> {
       throw std::runtime_error("cannot use " + request.target.config.at("secret").get<std::string>());
     }},
    {"tell-properties",
     [](const ListRequest& request) {
       const Json& secret = request.target.config.at("secret");
       const auto text = secret.get<std::string>();
       return ListPage{.items = {{.native_id = "told",
                                  .properties = {{"plain", secret},
                                                 {"within", "before " + text + " after"},
                                                 {"deep", {{"list", {1, secret}}}},
                                                 {text, "as a key"}},
                                  .uid = "uid-" + text}}};
     }},
    {"tell-id",
     [](const ListRequest& request) { return with_id("id/" + request.target.config.at("secret").get<std::string>()); }},
    {"tell-token",
     [](const ListRequest& request) {
       return ListPage{.items = {thing("good")}, .next_page_token = request.target.config.at("secret")};
     }},
    {"tell-problem",
     [](const ListRequest& request) {
       const auto text = request.target.config.at("secret").get<std::string>();
       return ListPage{.items = {thing("good")}, .problems = {{text, muster::access_denied("no " + text)}}};
     }},
};

Result<ListPage> list_things(const ListRequest& request, JobContext& context) {
  const std::string behaviour = request.target.config.value("behaviour", "good");
  if (behaviour.starts_with("tell-")) {
    context.log().warn("config {}", request.target.config.value("secret", ""));
    context.log().warn("whole config {}", request.target.config.dump());
  }
  for (const auto* all : {&kWrongAnswers, &kWrongPages, &kViolence, &kIndiscretion}) {
    if (const auto found = all->find(behaviour); found != all->end()) return found->second(request);
  }
  return muster::invalid_request("no behaviour " + behaviour);
}

Result<Resource> read_thing(const ReadRequest& request, JobContext&) {
  if (request.native_id == "other") return thing("another");
  if (request.native_id == "throws") throw std::runtime_error("thrown by plugin code");
  if (request.native_id == "unknown") return Resource{.properties = Properties(Json(7))};
  return muster::not_found();
}

Result<muster::Inspection> inspect(const muster::InspectRequest& request, JobContext&) {
  const std::string behaviour = request.target.config.value("behaviour", "good");
  if (behaviour == "inspect-throws") throw std::runtime_error("thrown by plugin code");
  if (behaviour == "inspect-type") return muster::Inspection{.types = {"HOSTILE::Unknown"}};
  if (behaviour == "inspect-filter") {
    return muster::Inspection{
        .filters = {{{"HOSTILE::Thing"}, {muster::PropertyMatch{"$[", muster::MatchOp::kRegex, "\"(\""}}, {}}}};
  }
  if (behaviour == "tell-inspect") {
    const auto secret = request.target.config.at("secret").get<std::string>();
    return muster::Inspection{.system = "system of " + secret,
                              .filters = {{{"HOSTILE::Thing"},
                                           {muster::PropertyMatch{"$.name", muster::MatchOp::kEq, Json(secret).dump()},
                                            muster::TagMatch{{secret}, secret}},
                                           {}}}};
  }
  return muster::Inspection{};
}

}  // namespace

int main(int argc, char** argv) {
  muster::Worker worker({.name = "hostile", .ns = "HOSTILE", .version = "1.0.0"});
  worker.type({.name = "HOSTILE::Thing"}).list(list_things).read(read_thing);
  worker.inspect(inspect);
  return worker.run(argc, argv);
}
