// A plugin that keeps its contract, but for the faults that the target's config names. Its things are files in a
// directory.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "muster/worker.h"

namespace {

namespace fs = std::filesystem;

using muster::JobContext;
using muster::Json;
using muster::Mutation;
using muster::Resource;
using muster::Result;

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "x-muster-create-only": true},
    "size": {"type": "integer", "default": 0},
    "password": {"type": "string", "writeOnly": true, "x-muster-secret": true}
  },
  "required": ["name"],
  "additionalProperties": false,
  "x-muster-identity": ["name"]
})";

bool has_fault(const muster::TargetInfo& target, const char* fault) {
  const Json faults = target.config.value("faults", Json::array());
  return std::ranges::find(faults, Json(fault)) != faults.end();
}

/// Where a target's things are; nothing without the right password.
Result<fs::path> directory_of(const muster::TargetInfo& target, JobContext& context) {
  if (target.config.value("password", "right") == "right") return fs::path(target.config.at("directory"));
  if (!has_fault(target, "tries-again")) return muster::access_denied("the password is wrong");
  context.count_calls(3);
  return muster::unavailable("the password is wrong");
}

std::string hex_of(std::size_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016zx", number);
  return text;
}

Result<Json> load(const fs::path& directory, const std::string& id) {
  std::ifstream file(directory / id);
  if (!file || id.find('/') != std::string::npos) return muster::not_found(id + " is not there");
  return Json::parse(file, nullptr, false);
}

/// Whole, or not at all.
void store(const fs::path& directory, const std::string& id, const Json& properties) {
  const fs::path draft = directory / (".draft-" + id + "-" + std::to_string(::getpid()));
  std::ofstream(draft) << properties.dump();
  fs::rename(draft, directory / id);
}

Resource shown(const muster::TargetInfo& target, const std::string& id, Json properties) {
  if (!has_fault(target, "unread")) properties.erase("password");
  return {.native_id = id, .properties = properties, .uid = "uid-" + id};
}

Result<Resource> read_thing(const muster::ReadRequest& request, JobContext& context) {
  const auto directory = directory_of(request.target, context);
  if (!directory) return directory.error();
  auto properties = load(*directory, request.native_id);
  if (properties) return shown(request.target, request.native_id, *properties);
  if (has_fault(request.target, "invents")) return shown(request.target, request.native_id, {{"name", "anything"}});
  return properties.error();
}

Result<muster::ListPage> list_things(const muster::ListRequest& request, JobContext& context) {
  const auto directory = directory_of(request.target, context);
  if (!directory) return directory.error();
  std::vector<std::string> ids;
  for (const auto& entry : fs::directory_iterator(*directory)) {
    if (const auto id = entry.path().filename().string(); id.front() != '.') ids.push_back(id);
  }
  std::ranges::sort(ids);
  ids.erase(ids.begin(), std::ranges::upper_bound(ids, request.page_token));
  muster::ListPage page;
  if (ids.size() > request.page_size) {
    ids.resize(request.page_size);
    page.next_page_token = ids.back();
    if (has_fault(request.target, "loses") && ids.size() > 1) ids.pop_back();
    // What is taken back by a character begins again with the id before.
    if (has_fault(request.target, "repeats")) page.next_page_token.back() -= 1;
  }
  for (const auto& id : ids) {
    if (const auto properties = load(*directory, id)) page.items.push_back(shown(request.target, id, *properties));
  }
  return page;
}

Result<Mutation> create_thing(const muster::CreateRequest& request, JobContext& context) {
  const auto directory = directory_of(request.target, context);
  if (!directory) return directory.error();
  const bool well = request.properties.contains("name") && request.properties["name"].is_string() &&
                    request.properties.value("size", Json(0)).is_number() &&
                    request.properties.value("password", Json("")).is_string();
  if (!well && !has_fault(request.target, "takes-anything")) return muster::invalid_request("a value of a wrong type");
  static std::atomic<unsigned> number = 0;
  const auto key = has_fault(request.target, "keys") ? std::to_string(::getpid()) + "-" + std::to_string(++number)
                                                     : request.idempotency_key;
  const std::string id = "thing-" + hex_of(std::hash<std::string>{}(key));
  store(*directory, id, request.properties);
  if (has_fault(request.target, "prints")) std::printf("made with %s\n", request.properties.dump().c_str());
  return Mutation(shown(request.target, id, request.properties));
}

Result<Mutation> update_thing(const muster::UpdateRequest& request, JobContext& context) {
  const auto directory = directory_of(request.target, context);
  if (!directory) return directory.error();
  auto properties = load(*directory, request.native_id);
  if (!properties) return properties.error();
  const auto current = shown(request.target, request.native_id, *properties);
  if (muster::violates(request.precondition, current) && !has_fault(request.target, "careless-update"))
    return muster::conflict("it has changed");
  if (has_fault(request.target, "crashes")) ::raise(SIGKILL);
  if (has_fault(request.target, "forgets")) return Mutation(shown(request.target, request.native_id, request.desired));
  auto desired = request.desired;
  if (properties->contains("password") && !desired.contains("password"))
    desired["password"] = (*properties)["password"];
  store(*directory, request.native_id, desired);
  return Mutation(shown(request.target, request.native_id, desired));
}

Result<Mutation> remove_thing(const muster::DeleteRequest& request, JobContext& context) {
  const auto directory = directory_of(request.target, context);
  if (!directory) return directory.error();
  const auto properties = load(*directory, request.native_id);
  if (!properties && has_fault(request.target, "deletes-once"))
    return muster::failure(muster::Errc::kInternalFailure, "no");
  if (!properties) return properties.error();
  if (muster::violates(request.precondition, shown(request.target, request.native_id, *properties)))
    return muster::conflict("it is another");
  fs::remove(*directory / request.native_id);
  return Mutation::deleted();
}

}  // namespace

int main(int argc, char** argv) {
  muster::Worker worker({.name = "careless", .ns = "CARELESS", .version = "1.0.0"});
  worker.type({.name = "CARELESS::Thing", .schema = kSchema, .list_gives = muster::ListGives::kProperties})
      .list(list_things)
      .read(read_thing)
      .create(create_thing)
      .update(update_thing)
      .remove(remove_thing);
  return worker.run(argc, argv);
}
