// A plugin whose jobs do what the tests of the worker process need.

#include <spdlog/logger.h>

#include <cstdio>
#include <thread>

#include "muster/worker.h"

namespace {

using namespace std::chrono_literals;

muster::Result<muster::ListPage> list_things(const muster::ListRequest&, muster::JobContext& context) {
  std::puts("printed by plugin code");
  std::fflush(stdout);
  context.log().info("listing");
  muster::ListPage page;
  page.items.push_back({.native_id = "one", .properties = {{"n", 1}}});
  return page;
}

muster::Result<muster::Resource> read_thing(const muster::ReadRequest& request, muster::JobContext& context) {
  if (request.native_id == "until-stopped") {
    while (!context.stop_token().stop_requested()) std::this_thread::sleep_for(5ms);
  }
  if (request.native_id == "a-while") std::this_thread::sleep_for(500ms);
  return muster::Resource{.properties = {{"secret", request.target.config.value("secret", "")}}};
}

}  // namespace

int main(int argc, char** argv) {
  muster::Worker worker({.name = "probe", .ns = "PROBE", .version = "1.0.0", .description = "Probes the worker SDK"});
  worker.type({.name = "PROBE::Thing", .list_gives = muster::ListGives::kProperties})
      .list(list_things)
      .read(read_thing);
  return worker.run(argc, argv);
}
