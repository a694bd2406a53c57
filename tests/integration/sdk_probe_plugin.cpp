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
  const auto life = std::make_shared<Life>();
  worker.initialize([life](muster::InitializeContext& context) { return life->initialize(context); })
      .health([life](muster::Context& context) { return life->check(context); })
      .cleanup([life](muster::Context& context) { life->clean_up(context); });
  return worker.run(argc, argv);
}
