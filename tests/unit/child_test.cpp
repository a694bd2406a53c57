#include "coordinator/cli/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/scratch.h"

using namespace muster;
using namespace muster::cli;
namespace fs = std::filesystem;

namespace {

Command shell(const std::string& script) {
  return {"sh", {"/bin/sh", "-c", script}, {{"PATH", "/usr/bin:/bin"}}};
}

Child started(const Command& command) {
  auto child = Child::start(command);
  REQUIRE(child);
  return std::move(*child);
}

template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// The next line that it writes.
std::string line_of(Child& child) {
  std::string first;
  REQUIRE(eventually([&] {
    child.read_lines([&](std::string_view line) {
      if (first.empty()) first = line;
    });
    return !first.empty();
  }));
  return first;
}

int wait_for(Child& child) {
  int status = -1;
  REQUIRE(eventually([&] { return child.ended(status); }));
  return status;
}

}  // namespace

TEST_CASE("a process joins its group before it runs, and without one it is not started") {
  const test::Scratch group;
  Command command = shell("cat '" + (group.path / "cgroup.procs").string() + "'");
  command.group = group.path;
  const auto refused = Child::start(command);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find((group.path / "cgroup.procs").string() + ": No such file") != std::string::npos);

  std::ofstream(group.path / "cgroup.procs").close();
  Child child = started(command);
  CHECK(line_of(child) == "0");
  CHECK(wait_for(child) == 0);
}

TEST_CASE("what cannot be run or limited is told by what failed") {
  Command command = shell("true");
  command.limits.cpu = 0.5;  // needs a group
  CHECK(Child::start(command).error().code == Errc::kUnsupported);

  command = {"nothing", {"/nowhere/nothing"}, {}};
  CHECK(Child::start(command).error().message == "/nowhere/nothing: No such file or directory");

  const test::Scratch group;
  command = shell("true");
  command.group = group.path;
  fs::create_symlink("/dev/full", group.path / "cgroup.procs");  // opens, and takes nothing
  const auto refused = Child::start(command);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("cgroup.procs: No space left") != std::string::npos);
}

TEST_CASE("what there are no descriptors for is no fault of the program") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{3, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto refused = Child::start(shell("true"));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kLimit);
  CHECK(refused.error().message == "pipe: Too many open files");
}

TEST_CASE("a file that is there and cannot be run is told by what it lacks") {
  const test::Scratch scratch;
  const auto [text, lacks] = GENERATE(table<std::string, std::string>(
      {{"#!/nowhere/sh\n", " is there, and the interpreter or loader that it names is not"},
       {"exit 0\n", " is no program for this machine, nor a script that begins with #!"}}));
  const auto path = (scratch.path / "program").string();
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_all);
  CHECK(Child::start({"program", {path}, {}}).error().message == path + lacks);
}

TEST_CASE("who writes without end is read a piece at a time") {
  Child child = started(shell("exec yes"));
  for (int turn = 0; turn < 3; ++turn) {
    pollfd output{child.output(), POLLIN, 0};
    REQUIRE(poll(&output, 1, 20'000) == 1);
    std::size_t lines = 0;
    child.read_lines([&](std::string_view) {
      REQUIRE(++lines <= 64 * 1024 / 2);
      if (lines % 2048 == 0) REQUIRE(poll(&output, 1, 20'000) == 1);  // it writes on meanwhile
    });
    CHECK(lines > 0);
  }
}

TEST_CASE("all that a process has written is read after its end") {
  Child child = started(shell("head -c 60000 /dev/zero | tr '\\0' '\\n'; printf last"));
  const int status = wait_for(child);
  std::size_t lines = 0;
  std::string last;
  child.read_rest([&](std::string_view line) {
    ++lines;
    last = line;
  });
  CHECK(describe_exit(status) == "exited with status 0");
  CHECK(lines == 60'001);
  CHECK(last == "last");
  CHECK(child.output() < 0);
}

TEST_CASE("no process that a child has started outlives it") {
  const std::string starts = "sleep 1000 & echo $!; ";
  const auto runs = [](const std::string& pid) {
    std::ifstream stat("/proc/" + pid + "/stat");
    std::string text;
    std::getline(stat, text);
    const auto name_end = text.rfind(')');
    return name_end != std::string::npos && text.at(name_end + 2) != 'Z';
  };
  SECTION("it is killed") {
    Child child = started(shell(starts + "wait"));
    const auto other = line_of(child);
    CHECK(runs(other));
    child.signal(SIGKILL);
    CHECK(describe_exit(wait_for(child)) == "killed by signal 9");
    CHECK(eventually([&] { return !runs(other); }));
  }
  SECTION("it ends") {
    Child child = started(shell(starts + "exit 3"));
    const auto other = line_of(child);
    CHECK(describe_exit(wait_for(child)) == "exited with status 3");
    CHECK(eventually([&] { return !runs(other); }));
  }
  SECTION("nobody waits for it") {
    std::string other;
    {
      Child child = started(shell(starts + "wait"));
      other = line_of(child);
    }
    CHECK(eventually([&] { return !runs(other); }));
  }
  SECTION("it is asked to end, and the other is not") {
    Child child =
        started(shell("(trap 'echo asked' TERM; echo ready; while :; do sleep 0.01; done) & exec sleep 1000"));
    CHECK(line_of(child) == "ready");
    child.signal(SIGTERM);
    CHECK(describe_exit(wait_for(child)) == "killed by signal 15");
    std::string said;
    child.read_rest([&](std::string_view line) { said += line; });
    CHECK(said.empty());
  }
}
