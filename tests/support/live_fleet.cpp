#include "support/live_fleet.h"

#include <signal.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace muster::test {

LiveFleet::LiveFleet(const std::string& config) {
  configure(config);
}

void LiveFleet::configure(const std::string& config) {
  std::string text = config;
  constexpr std::string_view kPlace = "@DIR@";
  for (auto at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace, at)) {
    text.replace(at, kPlace.size(), directory().string());
  }
  std::ofstream(directory() / "muster.yaml") << text;
}

LiveFleet::~LiveFleet() {
  if (up_ <= 0) return;
  ::kill(up_, SIGKILL);  // its children die with it
  wait_for(up_);
}

void LiveFleet::start(const std::vector<std::string>& args) {
  std::vector<std::string> words{"up", "-c", (directory() / "muster.yaml").string()};
  words.insert(words.end(), args.begin(), args.end());
  up_ = spawn({command(words), {}, directory() / "up.out", directory() / "up.err"});
  if (!eventually([&] { return muster({"status"}).status != 3; })) throw std::runtime_error("no fleet: " + log());
}

int LiveFleet::stop() {
  ::kill(up_, SIGTERM);
  const int status = wait_for(up_);
  up_ = -1;
  return status;
}

std::vector<pid_t> LiveFleet::processes(const std::string& what) const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::istringstream stat(slurp(entry.path() / "stat"));
    std::string skipped;
    pid_t parent = 0;
    stat >> skipped >> skipped >> skipped >> parent;  // pid (name) state ppid; none of our names has a blank
    if (parent == up_ && slurp(entry.path() / "cmdline").find(what) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

bool LiveFleet::kill_one(const std::string& what) const {
  const auto pids = processes(what);
  return !pids.empty() && ::kill(pids.front(), SIGKILL) == 0;
}

}  // namespace muster::test
