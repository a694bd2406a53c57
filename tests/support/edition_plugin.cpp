// A plugin in two editions, 1 and 2, as $EDITION says: the second has a type more. Each thing tells which edition
// listed it.

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "muster/worker.h"

namespace {

constexpr int kThings = 60;
constexpr std::size_t kPage = 5;

std::string edition() {
  const char* number = std::getenv("EDITION");
  return number == nullptr ? "1" : number;
}

muster::Result<muster::ListPage> list_things(const muster::ListRequest& request, muster::JobContext&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(request.target.config.value("latency_ms", 0)));
  muster::ListPage page;
  int number = request.page_token.empty() ? 0 : std::stoi(request.page_token);
  for (; number < kThings && page.items.size() < kPage; ++number) {
    page.items.push_back({.native_id = "thing-" + std::to_string(number), .properties = {{"edition", edition()}}});
  }
  if (number < kThings) page.next_page_token = std::to_string(number);
  return page;
}

muster::Result<muster::Resource> read_thing(const muster::ReadRequest&, muster::JobContext&) {
  return muster::Resource{.properties = {{"edition", edition()}}};
}

}  // namespace

int main(int argc, char** argv) {
  muster::Worker worker({.name = "edition", .ns = "EDITION", .version = edition() + ".0.0"});
  for (const std::string name : {"EDITION::Old", "EDITION::New"}) {
    if (name == "EDITION::New" && edition() == "1") continue;
    worker.type({.name = name, .list_gives = muster::ListGives::kProperties}).list(list_things).read(read_thing);
  }
  return worker.run(argc, argv);
}
