// A plugin whose jobs do what the tests of the worker process need.

#include <spdlog/logger.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <thread>

#include "muster/worker.h"

namespace {

using namespace std::chrono_literals;

muster::Result<muster::ListPage> list_things(const muster::ListRequest&, muster::JobContext& context) {
  std::puts("printed by plugin code");
  context.log().info("listing");
  muster::ListPage page;
  page.items.push_back({.native_id = "one", .properties = {{"n", 1}}});
  return page;
}

muster::Result<muster::Resource> read_thing(const muster::ReadRequest& request, muster::JobContext& context) {
  if (request.native_id == "until-stopped") {
    while (!context.stop_token().stop_requested()) std::this_thread::sleep_for(5ms);
  }
  if (request.native_id == "a-while") std::this_thread::sleep_for(3s);
  return muster::Resource{.properties = {{"secret", request.target.config.value("secret", "")}}};
}

muster::Result<muster::Mutation> create_thing(const muster::CreateRequest& request, muster::JobContext& context) {
  const std::string name = request.properties.at("name");
  context.log().info("creating {}", name);
  if (name == "never-done") {
    while (!context.stop_token().stop_requested()) std::this_thread::sleep_for(5ms);
    return muster::failure(muster::Errc::kCancelled, "stopped");
  }
  return muster::Mutation({.native_id = name, .properties = request.properties});
}

/// Answers as the id says: on the loop, from a slot's thread, or from one of its own.
void read_remote(const muster::AsyncReadMany& call) {
  const auto id = call.request().native_ids.front();
  const auto answer = [call, id] {
    call.context().log().info("answers {}", id);
    call.answer({{muster::Resource{.native_id = id, .properties = {{"id", id}}}}});
  };
  if (id.starts_with("after")) return call.after(5ms, answer);
  if (id.starts_with("block")) return call.block([call, answer] { call.after(1ms, answer); });
  if (id.starts_with("thread")) return std::thread(answer).detach();
  if (id == "until-stopped") return call.after(1h, answer);
  answer();
}

[[noreturn]] void hang() {
  for (;;) pause();
}

/// The plugin's life, as variables of the environment want it.
struct Life {
  std::string token, health, cleanup;

  muster::Result<void> initialize(muster::InitializeContext& context) {
    health = context.env("PROBE_HEALTH").value_or("");
    cleanup = context.env("PROBE_CLEANUP").value_or("");
    if (context.env("PROBE_THREAD")) static const std::jthread kEndless(hang);
    const auto credential = context.env("PROBE_CREDENTIAL");
    if (!credential) return {};
    auto value = context.credential(*credential);
    if (!value) return value.error();
    token = *value;
    return {};
  }
  muster::Result<void> check(muster::Context&) const {
    if (health.empty()) return {};
    return muster::unavailable(health + " with " + token);
  }
  void clean_up(muster::Context& context) const {
    context.log().info("cleans up with {}", token);
    if (cleanup == "hangs") hang();
    std::puts("printed by cleanup");
  }
};

}  // namespace

int main(int argc, char** argv) {
  muster::Worker worker({.name = "probe", .ns = "PROBE", .version = "1.0.0", .description = "Probes the worker SDK"});
  worker.type({.name = "PROBE::Thing", .list_gives = muster::ListGives::kProperties})
      .list(list_things)
      .read(read_thing)
      .create(create_thing);
  worker.type({.name = "PROBE::Remote"}).read_many_async(read_remote);
  const auto life = std::make_shared<Life>();
  worker.initialize([life](muster::InitializeContext& context) { return life->initialize(context); })
      .health([life](muster::Context& context) { return life->check(context); })
      .cleanup([life](muster::Context& context) { life->clean_up(context); });
  return worker.run(argc, argv);
}
