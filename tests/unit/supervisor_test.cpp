#include "coordinator/cli/supervisor.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::cli;

TEST_CASE("what a process leaves behind is waited for where it becomes a child of the supervisor") {
  const pid_t first = ::fork();  // as the first process of a container is
  if (first == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    Supervisor supervisor([](const std::string&, std::string_view) {});
    const Command command{"sh", {"/bin/sh", "-c", "sleep 1000 & exit 0"}, {{"PATH", "/usr/bin:/bin"}}};
    const bool started = static_cast<bool>(supervisor.start_once(command, Stage::kWorkers));
    siginfo_t ended{};
    const auto children = [&] { return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0; };
    for (int turns = 0; turns < 2000 && children(); ++turns) supervisor.turn(Millis{10});
    ::_exit(started && !children() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(first, &status, 0) == first);
  CHECK(status == 0);
}
