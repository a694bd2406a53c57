// A plugin of which each worker works at its own pace: $PACE_MS for a read. Each thing tells who read it.

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "muster/worker.h"

namespace {

std::string setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// The config says how many `things` there are.
muster::Result<muster::ListPage> list_things(const muster::ListRequest& request, muster::JobContext&) {
  muster::ListPage page;
  for (int i = 0; i < request.target.config.value("things", 0); ++i) {
    page.items.push_back({.native_id = "thing-" + std::to_string(i)});
  }
  return page;
}

muster::Result<muster::Resource> read_thing(const muster::ReadRequest&, muster::JobContext&) {
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(setting("PACE_MS"))));
  const std::chrono::duration<double, std::milli> took = steady_clock::now() - begin;
  return muster::Resource{.properties = {{"reader", setting("PACE_NAME")}, {"took_ms", took.count()}}};
}

}  // namespace

int main(int argc, char** argv) {
  muster::Worker worker({.name = "paced", .ns = "PACED", .version = "1.0.0"});
  worker.type({.name = "PACED::Thing", .read_batch = 1}).list(list_things).read(read_thing);
  return worker.run(argc, argv);
}
