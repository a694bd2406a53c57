#include "support/live_fleet.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::filesystem::path binary() {
  const char* dir = std::getenv("MUSTER_BIN_DIR");
  if (dir == nullptr) throw std::runtime_error("MUSTER_BIN_DIR is not set: run the test with ctest");
  return std::filesystem::path(dir) / "muster";
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

LiveFleet::LiveFleet(const std::string& config) {
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-fleet-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
  std::ofstream(directory_ / "muster.yaml") << config;
}

LiveFleet::~LiveFleet() {
  if (up_ > 0) {
    ::kill(up_, SIGKILL);  // its children die with it
    wait_for(up_);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

pid_t LiveFleet::spawn(const std::vector<std::string>& args, const std::filesystem::path& out,
                       const std::filesystem::path& err) const {
  std::vector<std::string> words{binary().string()};
  words.insert(words.end(), args.begin(), args.end());
  words.insert(words.end(), {"--data-dir", (directory_ / "data").string()});
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  unsetenv("MUSTER_NATS_URL");
  dup2(open("/dev/null", O_RDONLY), 0);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
  execv(argv[0], argv.data());
  _exit(127);
}

void LiveFleet::start() {
  up_ = spawn({"up", "-c", (directory_ / "muster.yaml").string()}, directory_ / "up.out", directory_ / "up.err");
  if (!eventually([&] { return muster({"status"}).status != 3; })) throw std::runtime_error("no fleet: " + log());
}

int LiveFleet::stop() {
  ::kill(up_, SIGTERM);
  const int status = wait_for(up_);
  up_ = -1;
  return status;
}

Answer LiveFleet::muster(const std::vector<std::string>& args) const {
  const auto out = directory_ / "answer";
  const pid_t pid = spawn(args, out, directory_ / "cli.err");
  Answer answer;
  answer.status = wait_for(pid);
  answer.out = slurp(out);
  return answer;
}

nlohmann::json LiveFleet::json(std::vector<std::string> args) const {
  args.insert(args.end(), {"-o", "json"});
  const auto answer = muster(args);
  return nlohmann::json::parse(answer.out.empty() ? "null" : answer.out);
}

std::vector<nlohmann::json> LiveFleet::resources() const {
  std::vector<nlohmann::json> lines;
  std::istringstream text(muster({"resources", "-o", "ndjson"}).out);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
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

bool LiveFleet::eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 90s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(50ms);
  }
  return true;
}

std::string LiveFleet::log() const {
  return slurp(directory_ / "up.out") + slurp(directory_ / "up.err") + slurp(directory_ / "cli.err");
}

}  // namespace muster::test
