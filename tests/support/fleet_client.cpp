#include "support/fleet_client.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAnswerTime = "60s";  // a machine may stand still for longer than a user waits

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Our environment without what says where a fleet is, with `more`.
std::vector<std::string> environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto name = text.substr(0, text.find('='));
    const bool ours = name == "MUSTER_BIN_DIR" || name == "MUSTER_SOURCE_DIR";
    if ((!name.starts_with("MUSTER_") || ours) && !more.contains(name)) all.push_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

}  // namespace

pid_t spawn(const Program& program) {
  auto words = program.argv;
  auto settings = environment(program.environment);
  const auto argv = pointers(words);
  const auto env = pointers(settings);
  const passwd* user = program.as_nobody ? ::getpwnam("nobody") : nullptr;
  if (program.as_nobody && user == nullptr) throw std::runtime_error("no user nobody");
  const uid_t uid = user == nullptr ? 0 : user->pw_uid;
  const gid_t gid = user == nullptr ? 0 : user->pw_gid;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) return pid;
  // Only async-signal-safe calls: the parent may have threads.
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::dup2(::open(program.out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDOUT_FILENO);
  ::dup2(::open(program.err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
  if (user != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0)) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears it
  if (::getppid() != parent) ::_exit(1);
  ::execve(argv[0], argv.data(), env.data());
  ::_exit(127);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::filesystem::path built(const std::string& name) {
  const char* dir = std::getenv("MUSTER_BIN_DIR");
  if (dir == nullptr) throw std::runtime_error("MUSTER_BIN_DIR is not set: run the test with ctest");
  return std::filesystem::path(dir) / name;
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

FleetClient::FleetClient() {
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-fleet-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = pattern;
}

FleetClient::~FleetClient() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::string> FleetClient::command(const std::vector<std::string>& words) const {
  std::vector<std::string> all{built("muster")};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--data-dir", (directory_ / "data").string()});
  all.insert(all.end(), where_.begin(), where_.end());
  return all;
}

std::vector<std::string> FleetClient::question(std::vector<std::string> args) const {
  const bool limited = std::ranges::find(args, "--timeout") != args.end();
  if (!limited) args.insert(args.end(), {"--timeout", kAnswerTime});
  return command(args);
}

FleetClient::Task FleetClient::begin(const std::vector<std::string>& args) const {
  const auto answer = "answer" + std::to_string(tasks_++);
  Task task{-1, directory_ / answer, directory_ / (answer + "-err")};
  task.process = spawn({question(args), {}, task.out, task.err});
  return task;
}

Answer FleetClient::finish(const Task& task) const {
  Answer answer;
  answer.status = wait_for(task.process);
  answer.out = slurp(task.out);
  answer.err = slurp(task.err);
  std::filesystem::remove(task.out);
  std::filesystem::remove(task.err);
  std::ofstream(directory_ / "cli.err", std::ios::app) << answer.err;
  return answer;
}

FleetClient::Json FleetClient::json(std::vector<std::string> args) const {
  args.insert(args.end(), {"-o", "json"});
  const auto answer = muster(args);
  return Json::parse(answer.out.empty() ? "null" : answer.out);
}

std::vector<FleetClient::Json> FleetClient::resources(const std::vector<std::string>& args) const {
  std::vector<std::string> words{"resources", "-o", "ndjson"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<Json> lines;
  std::istringstream text(muster(words).out);
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

FleetClient::Json FleetClient::discover(const std::vector<std::string>& args) const {
  std::vector<std::string> words{"discover", "--wait"};
  words.insert(words.end(), args.begin(), args.end());
  auto report = json(words);
  if (!report.is_object() || !report.contains("state")) throw std::runtime_error("no report of a run: " + log());
  return report;
}

std::vector<FleetClient::Json> FleetClient::events(std::uint64_t after, const std::string& type) const {
  return json({"events", "--since", std::to_string(after), "--type", type});
}

std::vector<std::string> FleetClient::resource_events(std::uint64_t after) const {
  std::vector<std::string> all;
  for (const auto& event : events(after, "resource.*")) {
    const auto& data = event.at("data");
    all.push_back(event.at("type").get<std::string>().substr(std::string_view("muster.resource.").size()) + " " +
                  data.at("type").get<std::string>() + " " + data.at("native_id").get<std::string>());
  }
  std::ranges::sort(all);
  return all;
}

std::uint64_t FleetClient::last_event() const {
  return json({"status"}).at("events").at("last").get<std::uint64_t>();
}

bool FleetClient::user_run_reads() const {
  const auto runs = json({"runs"});
  return std::ranges::any_of(runs, [](const Json& run) {
    return run.value("trigger", "") == "user" &&
           std::ranges::any_of(run.value("scans", Json::array()),
                               [](const Json& scan) { return scan.value("read", 0) > 0; });
  });
}

bool FleetClient::eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 3min;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(200ms);  // a question is a process, which takes its time from the fleet
  }
  return true;
}

std::string FleetClient::log() const {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".out") || name.ends_with(".err")) all += name + ":\n" + slurp(entry.path());
  }
  return all;
}

}  // namespace muster::test
