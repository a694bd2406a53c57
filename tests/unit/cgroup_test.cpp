#include "coordinator/cli/cgroup.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "support/scratch.h"

using namespace muster;
using namespace muster::cli;
namespace fs = std::filesystem;

namespace {

/// Files as the kernel has them in /sys/fs/cgroup, for a process in group `a/b`.
struct Mount : test::Scratch {
  Mount() {
    for (const char* file : {"cgroup.controllers", "cgroup.subtree_control", "supervisor/cgroup.procs",
                             "worker-1/cpu.max", "worker-1/memory.max", "worker-2/cpu.max"}) {
      fs::create_directories((own() / file).parent_path());
      std::ofstream(own() / file);
    }
  }

  [[nodiscard]] fs::path own() const { return path / "a" / "b"; }
  [[nodiscard]] std::string text(const std::string& file) const { return read_file(own() / file).value(); }
};

constexpr const char* kOwn = "12:cpu:/else\n0::/a/b\n";

}  // namespace

TEST_CASE("a delegated group is divided: one for the supervisor, one with limits for each worker") {
  const Mount mount;
  auto groups = Cgroups::divide(mount.path, kOwn);
  REQUIRE(groups);
  CHECK(mount.text("supervisor/cgroup.procs") == "0");
  CHECK(mount.text("cgroup.subtree_control") == "+cpu +memory");
  CHECK(groups->make({512ULL << 20, 0.5}).value() == mount.own() / "worker-1");
  CHECK(mount.text("worker-1/cpu.max") == "50000 100000");
  CHECK(mount.text("worker-1/memory.max") == "536870912");
  CHECK(groups->make({0, 2}).value() == mount.own() / "worker-2");
  CHECK(mount.text("worker-2/cpu.max") == "200000 100000");
  const auto refused = groups->make({0, 1});  // a new directory, where only the kernel could make files
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("worker-3/cpu.max: ") != std::string::npos);
  CHECK_FALSE(fs::exists(mount.own() / "worker-3"));
}

TEST_CASE("a group is removed when the last of its processes has gone, which are killed") {
  const Mount mount;
  std::ofstream(mount.own() / "worker-1" / "cgroup.kill").close();
  auto groups = Cgroups::divide(mount.path, kOwn);
  REQUIRE(groups);
  const auto group = groups->make({512ULL << 20, 0.5});
  REQUIRE(group);
  groups->remove(*group);
  CHECK(mount.text("worker-1/cgroup.kill") == "1");
  CHECK_FALSE(groups->sweep());  // not empty yet
  CHECK(fs::exists(*group));
  for (const char* file : {"cgroup.kill", "cpu.max", "memory.max"}) fs::remove(*group / file);
  CHECK(groups->sweep());
  CHECK_FALSE(fs::exists(*group));
}

TEST_CASE("who has no group of its own to divide is told so") {
  const Mount mount;
  CHECK(Cgroups::divide(mount.path, "12:cpu:/a\n").error().code == Errc::kUnsupported);
  CHECK(Cgroups::divide(mount.path, "").error().code == Errc::kUnsupported);
  CHECK(Cgroups::divide(mount.path, "0::/nowhere\n").error().message.find("No such file") != std::string::npos);
  fs::remove(mount.own() / "cgroup.subtree_control");
  CHECK_FALSE(Cgroups::divide(mount.path, kOwn));
}
