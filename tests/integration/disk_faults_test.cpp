// The disk under the store and the workers' journals is full for a while.

#include "support/loaded_fleet.h"
#include "support/small_disk.h"

using namespace muster::test;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kWide = 1000;

/// A loaded fleet whose data directory is a disk of its own; the books of the cloud are kept elsewhere.
class FullFleet : public LoadedFleet {
 public:
  void begin_fleet() {
    const std::string fake = ", namespace: FAKE, config: {latency_ms: 300, ";
    configure(
        "discovery: {interval: 0s}\nretry: {attempts: 30, base: 50ms, max: 1s}\n"
        "targets:\n  - {name: cloud" +
        fake + "resources: 0, state: " + state() + "}}\n  - {name: wide" + fake +
        "resources: " + std::to_string(kWide) + ", page: 50, bytes: 9000, list_properties: false}}\n");
    for (int i = 0; i < 2; ++i) add_worker({"fake", "--slots", "3"});
  }

  const SmallDisk disk{directory() / "data", "64m"};
};

}  // namespace

TEST_CASE("what the disk has no room for is not lost, and goes on when there is room") {
  FullFleet fleet;
  if (!fleet.disk.mounted()) {
    WARN("skipped: no small file system can be mounted here (needs root and CAP_SYS_ADMIN)");
    return;
  }
  fleet.begin_fleet();
  fleet.load();
  fleet.disk.fill();
  fleet.kill_coordinator();  // who starts anew needs room sooner than who has files that are large enough
  fleet.start_coordinator();
  const auto full = [&] { return fleet.muster({"status"}).err.find("disk is full") != std::string::npos; };
  REQUIRE(fleet.eventually(full));
  CHECK_FALSE(fleet.applied());
  fleet.disk.make_room();
  fleet.check_end(kWide);
}
