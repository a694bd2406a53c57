#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "coordinator/cli/child.h"
#include "support/scratch.h"

// `muster up` with the real executables: everything on one machine, and its end.

using namespace muster;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kPatience{180};  // for what takes a second on an idle machine

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Answer {
  int status = -1;
  std::string out, err;
};

/// A directory with a tree to take inventory of, a configuration and a data directory.
class Place {
 public:
  explicit Place(const std::string& root = "tree") {
    fs::create_directories(scratch_.path / "tree" / "sub");
    std::ofstream(scratch_.path / "tree" / "file") << "content";
    std::ofstream(scratch_.path / "muster.yaml") << "workers: [{plugin: fs, count: 2}]\n"
                                                    "targets: [{name: tree, namespace: FS, config: {root: '"
                                                 << (scratch_.path / root).string() << "'}}]\n";
    env_ = cli::process_environment();
    for (const char* name : {"MUSTER_NATS_URL", "MUSTER_PREFIX", "MUSTER_CONFIG", "MUSTER_STORE"}) env_.erase(name);
    env_["MUSTER_DATA_DIR"] = data().string();
  }
  [[nodiscard]] fs::path data() const { return scratch_.path / "data"; }
  [[nodiscard]] fs::path config() const { return scratch_.path / "muster.yaml"; }
  [[nodiscard]] fs::path path(const std::string& name) const { return scratch_.path / name; }
  [[nodiscard]] fs::path tree() const { return scratch_.path / "tree"; }

  [[nodiscard]] cli::Child start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), std::string(std::getenv("MUSTER_BIN_DIR")) + "/muster");
    auto child = cli::Child::start({"muster", std::move(arguments), env_});
    REQUIRE(child);
    return std::move(*child);
  }

  /// `muster` with arguments, for a shell.
  [[nodiscard]] std::string muster_line(const std::string& arguments) const {
    return "MUSTER_DATA_DIR='" + data().string() + "' '" + std::getenv("MUSTER_BIN_DIR") + "/muster' " + arguments;
  }

  /// Runs `muster` with arguments for a shell, to its end.
  [[nodiscard]] Answer muster(const std::string& arguments) const {
    const std::string command =
        muster_line(arguments) + " >" + (scratch_.path / "out").string() + " 2>" + (scratch_.path / "err").string();
    Answer answer;
    answer.status = WEXITSTATUS(std::system(command.c_str()));
    answer.out = text_of(scratch_.path / "out");
    answer.err = text_of(scratch_.path / "err");
    if (answer.status != 0) UNSCOPED_INFO("muster " << arguments << ": " << answer.status << ' ' << answer.err);
    return answer;
  }

 private:
  muster::test::Scratch scratch_;
  cli::Environment env_;
};

/// A running `muster up`.
class Up {
 public:
  explicit Up(const Place& place) : place_(place), child_(place.start({"up", "-c", place.config()})) {
    const bool is_up = eventually([this] {
      read();
      return said_.find("Worth trying") != std::string::npos;
    });
    INFO(said_);
    REQUIRE(is_up);
  }

  void signal(int number) { child_.signal(number); }
  [[nodiscard]] pid_t pid() const { return child_.pid(); }

  /// Exit status of the process, once it has ended.
  int wait() {
    int status = -1;
    const bool ended = eventually([&] {
      read();
      return child_.ended(status);
    });
    INFO(said_);
    REQUIRE(ended);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// The process of a child that said its name.
  [[nodiscard]] const std::string& said() {
    read();
    return said_;
  }

 private:
  void read() {
    child_.read_lines([this](std::string_view line) { said_ += std::string(line) + "\n"; });
  }

  const Place& place_;
  cli::Child child_;
  std::string said_;
};

/// Process ids of the children of `parent` whose command line has `word` in it.
std::vector<pid_t> children(pid_t parent, const std::string& word) {
  std::vector<pid_t> found;
  std::istringstream ids(text_of("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"));
  for (pid_t id = 0; ids >> id;) {
    if (text_of("/proc/" + std::to_string(id) + "/cmdline").find(word) != std::string::npos) found.push_back(id);
  }
  return found;
}

/// Whether a process runs; one that waits to be reaped does not.
bool runs(pid_t id) {
  const std::string status = text_of("/proc/" + std::to_string(id) + "/stat");
  const std::size_t state = status.rfind(')');
  return state != std::string::npos && status.at(state + 2) != 'Z';
}

}  // namespace

TEST_CASE("bad usage says of which verb the help is") {
  const Place place;
  const auto told = [&](const std::string& arguments) {
    const Answer answer = place.muster(arguments);
    CHECK(answer.status == 2);
    return answer.err;
  };
  CHECK(told("fly") == "muster: unknown verb fly (see muster --help)\n");
  CHECK(told("plugin fly") == "muster: unknown verb fly (see muster plugin --help)\n");
  CHECK(told("plugin") == "muster: a verb is needed (see muster plugin --help)\n");
  CHECK(told("--fly") == "muster: unknown option --fly (see muster --help)\n");
  CHECK(told("plugin --fly") == "muster: unknown option --fly (see muster plugin --help)\n");
  CHECK(told("plugin list") == "muster: --folder is required (see muster plugin list --help)\n");
  CHECK(told("plugin -o xml list --folder x").find(" (see muster plugin list --help)\n") != std::string::npos);
}

TEST_CASE("up --once takes one inventory and stops") {
  const Place place;
  const Answer first = place.muster("up --once -q -c '" + place.config().string() + "'");
  INFO(first.err);
  CHECK(first.status == 0);
  CHECK(first.out ==
        "TARGET  TYPE           COUNT  STALE\n"
        "tree    FS::Directory      2      0\n"
        "tree    FS::File           1      0\n");
  CHECK_FALSE(fs::exists(place.data() / "nats.url"));
  const Answer again = place.muster("up --once -q -o json -c '" + place.config().string() + "'");
  CHECK(again.status == 0);
  CHECK(Json::parse(again.out).size() == 2);
}

TEST_CASE("up --once tells an inventory that is not complete") {
  const Place place("nowhere");
  const Answer answer = place.muster("up --once -c '" + place.config().string() + "'");
  INFO(answer.err);
  CHECK(answer.status == 1);
  CHECK(answer.out.empty());
  CHECK(answer.err.find("problem: tree ") != std::string::npos);
}

TEST_CASE("nothing that is said without standard streams goes into a file of the fleet") {
  const Place place;
  const auto command = place.muster_line("up --once -c '" + place.config().string() + "' <&- >&- 2>&-");
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 1);  // its answer cannot be written
  std::size_t locks = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place.data())) {
    if (!entry.path().filename().string().ends_with("lock")) continue;
    const auto held_by = text_of(entry.path());
    INFO(entry.path() << ": " << held_by);
    CHECK(held_by.find_first_not_of("0123456789\n") == std::string::npos);
    ++locks;
  }
  CHECK(locks >= 2);
}

TEST_CASE("a file that would be larger than a process may write is a failed write") {
  const Place place;
  const auto limited = [&](const std::string& line) {
    const auto redirected = " >'" + place.path("large").string() + "' 2>'" + place.path("said").string() + "'";
    return WEXITSTATUS(std::system(("ulimit -f 1; " + line + redirected + "; exit $?").c_str()));
  };
  CHECK(limited(place.muster_line("completion bash")) == 1);
  CHECK(text_of(place.path("said")) == "muster: the answer cannot be written\n");
  CHECK(limited("'" + std::string(std::getenv("MUSTER_BIN_DIR")) + "/muster-plugin-fake' --manifest") < 128);
}

TEST_CASE("up refuses what it cannot run before it starts anything") {
  const Place place;
  CHECK(place.muster("up -c /nowhere.yaml").status == 2);
  CHECK(place.muster("worker fs --count 3 --max 2").status == 2);
  std::ofstream(place.config()) << "workers: [{plugin: no-such}]\n";
  const Answer answer = place.muster("up -c '" + place.config().string() + "'");
  CHECK(answer.status == 2);
  CHECK(answer.err.find("muster-plugin-no-such") != std::string::npos);
  CHECK_FALSE(fs::exists(place.data()));
}

TEST_CASE("a running fleet answers, is alone in its data directory, and stops when asked") {
  const Place place;
  std::string port;
  {
    Up up(place);
    port = text_of(place.data() / "nats.port");
    struct stat url {};
    REQUIRE(stat((place.data() / "nats.url").c_str(), &url) == 0);
    CHECK((url.st_mode & 0777U) == 0600U);
    CHECK(place.muster("status").status == 0);

    const Answer second = place.muster("up -c '" + place.config().string() + "'");
    CHECK(second.status == 1);
    CHECK(second.err.find("another `muster up` uses ") != std::string::npos);

    std::ofstream(place.tree() / "new") << "x";
    const Answer report = place.muster("discover --wait --target tree -o json");
    CHECK(report.status == 0);
    CHECK(Json::parse(report.out)["state"] == "complete");
    const Answer line = place.muster("resources new -o ndjson");
    CHECK(Json::parse(line.out)["native_id"] == (place.tree() / "new").string());
    CHECK(place.muster("resource '" + Json::parse(line.out)["id"].get<std::string>() + "'").status == 0);
    CHECK(place.muster("resource nobody").status == 1);
    CHECK(Json::parse(place.muster("workers -o json").out).size() == 2);
    CHECK(place.muster("events --type 'resource.*' --limit 3 -o json").status == 0);

    // A reader that has left is no trouble to talk about: nobody has the other end of this pipe.
    const std::string said = place.path("said"), pipe = place.path("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const auto resources = std::string("'") + std::getenv("MUSTER_BIN_DIR") + "/muster' --data-dir '" +
                           place.data().string() + "' resources -o ndjson";
    const auto script = "exec 3<>'" + pipe + "' 4>'" + pipe + "' 3<&-; " + resources + " >&4 2>'" + said + "'";
    const int status = std::system(script.c_str());
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(text_of(said).empty());

    up.signal(SIGTERM);
    CHECK(up.wait() == 0);
    CHECK_FALSE(fs::exists(place.data() / "nats.url"));
  }
  Up again(place);
  CHECK(text_of(place.data() / "nats.port") == port);
  CHECK(place.muster("resources new -o ndjson").out.find("\"present\"") != std::string::npos);
  again.signal(SIGINT);
  CHECK(again.wait() == 0);
}

TEST_CASE("up starts nothing where another fleet is on its prefix") {
  const Place first, second;
  Up up(first);
  auto url = text_of(first.data() / "nats.url");
  url.erase(url.find_last_not_of('\n') + 1);
  const auto refused = second.muster("up --once -c '" + second.config().string() + "' --nats " + url);
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Catch::Contains("is on prefix 'muster'") && Catch::Contains("--prefix"));
  CHECK(Json::parse(first.muster("workers -o json").out).size() == 2);
  const auto beside = second.muster("up --once -c '" + second.config().string() + "' --prefix beside --nats " + url);
  CHECK(beside.status == 0);
  up.signal(SIGTERM);
  CHECK(up.wait() == 0);
}

TEST_CASE("no coordinator starts with a copy of the store of one that runs") {
  const Place first, second;
  Up up(first);
  auto url = text_of(first.data() / "nats.url");
  url.erase(url.find_last_not_of('\n') + 1);
  fs::create_directories(second.data());
  for (const auto* file : {"muster.db", "muster.db-wal"}) fs::copy_file(first.data() / file, second.data() / file);
  auto copy = second.start({"coordinator", "--data-dir", second.data(), "--nats", url});
  std::string said;
  int status = -1;
  CHECK(eventually([&] {
    copy.read_lines([&](std::string_view line) { said += line; });
    return copy.ended(status);
  }));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK_THAT(said, Catch::Contains("another copy of this store"));
  up.signal(SIGTERM);
  CHECK(up.wait() == 0);
}

TEST_CASE("a fleet whose words nobody reads goes on, and stops when asked") {
  const Place place;
  const auto plugins = place.path("plugins");
  fs::create_directory(plugins);
  for (const auto& [name, text] : {std::pair("noise", "#!/bin/sh\nexec yes 'a line of what it does' >&2\n"),
                                   std::pair("short", "#!/bin/sh\nexit 1\n")}) {
    std::ofstream(plugins / name) << text;
    fs::permissions(plugins / name, fs::perms::owner_all);
  }
  std::ofstream(place.config()) << "workers: [{folder: '" << plugins.string() << "'}]\n";
  auto up = place.start({"up", "-c", place.config()});
  // `short` is quarantined after the pipe is full: whoever starts it still does.
  CHECK(eventually([&] { return place.muster("plugins -o json").out.find("ended 5 times") != std::string::npos; }));
  int unread = 0;
  CHECK(ioctl(up.output(), FIONREAD, &unread) == 0);
  CHECK(unread > 60'000);
  up.signal(SIGTERM);
  int status = -1;
  CHECK(eventually([&] { return up.ended(status); }));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a coordinator that waits for the bus stops when asked") {
  const Place place;
  auto child = place.start({"coordinator", "-c", place.config(), "--nats", "nats://127.0.0.1:1"});
  std::string said;
  CHECK(eventually([&] {
    child.read_lines([&](std::string_view line) { said += line; });
    return said.find("cannot reach the bus") != std::string::npos;
  }));
  child.signal(SIGTERM);
  int status = -1;
  CHECK(eventually([&] { return child.ended(status); }));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("what ends is started again, and nothing outlives up") {
  const Place place;
  Up up(place);
  const auto coordinators = children(up.pid(), "coordinator");
  REQUIRE(coordinators.size() == 1);
  kill(coordinators[0], SIGKILL);
  CHECK(eventually([&] {
    const auto now = children(up.pid(), "coordinator");
    return now.size() == 1 && now != coordinators && place.muster("status").status == 0;
  }));
  CHECK(up.said().find("coordinator: killed by signal 9") != std::string::npos);
  const auto all = children(up.pid(), "");
  CHECK(all.size() == 4);
  up.signal(SIGKILL);
  CHECK(up.wait() == 128 + SIGKILL);
  for (const pid_t id : all) CHECK(eventually([&] { return !runs(id); }));
}

TEST_CASE("who is connected when up is killed comes back when it is there again") {
  const Place place;
  Up up(place);
  auto watcher = place.start({"events", "--follow", "--since", "0", "-o", "ndjson"});
  auto worker = place.start({"worker", "fs"});
  std::string said;
  const auto hears = [&](const std::string& what) {
    return eventually([&] {
      worker.read_lines([](std::string_view) {});
      watcher.read_lines([&](std::string_view line) { said += std::string(line) + "\n"; });
      return said.find(what) != std::string::npos;
    });
  };
  const auto active = [&] { return Json::parse(place.muster("workers -o json").out).size(); };
  CHECK(hears("muster.run.finished"));
  CHECK(eventually([&] { return active() == 3; }));
  up.signal(SIGKILL);
  CHECK(up.wait() == 128 + SIGKILL);
  Up again(place);
  const Answer report = place.muster("discover --wait -o json");
  CHECK(report.status == 0);
  CHECK(hears(Json::parse(report.out)["run"].get<std::string>()));
  CHECK(eventually([&] { return active() == 3; }));
  for (auto* child : {&watcher, &worker}) {
    child->signal(SIGTERM);
    int status = -1;
    CHECK(eventually([&] { return child->ended(status); }));
  }
  again.signal(SIGTERM);
  CHECK(again.wait() == 0);
}

TEST_CASE("jobs that wait for slots get more workers") {
  const Place place;
  std::ofstream config(place.config());
  config << "workers: [{plugin: fake, min: 1, max: 3, slots: 1}]\ntargets:\n";
  for (int i = 0; i < 24; ++i) {
    config << "  - {name: t" << i << ", namespace: FAKE, config: {resources: 20, page: 2, latency_ms: 200}}\n";
  }
  config.close();
  Up up(place);
  CHECK(Json::parse(place.muster("workers -o json").out).size() == 3);
  CHECK(Json::parse(place.muster("resources -o json").out).size() == 480);
  const auto run = Json::parse(place.muster("runs -o json").out).at(0);
  CHECK(run["state"] == "complete");
  up.signal(SIGTERM);
  CHECK(up.wait() == 0);
}

TEST_CASE("a worker that muster becomes has the environment of one that muster starts") {
  const Place place;
  const fs::path plugin = place.tree().parent_path() / "plugin";
  std::ofstream(plugin) << "#!/bin/sh\nenv\necho arguments: \"$@\"\n";
  fs::permissions(plugin, fs::perms::owner_all);
  setenv("MUSTER_NATS_CREDS", "/its/own.creds", 1);
  const Answer answer = place.muster("worker '" + plugin.string() + "' --nats nats://127.0.0.1:1");
  unsetenv("MUSTER_NATS_CREDS");
  INFO(answer.err);
  CHECK(answer.status == 0);
  CHECK(answer.out.find("MUSTER_NATS_URL=nats://127.0.0.1:1\n") != std::string::npos);
  CHECK(answer.out.find("PATH=") != std::string::npos);
  CHECK(answer.out.find("--creds /its/own.creds") != std::string::npos);
  CHECK(answer.out.find("MUSTER_NATS_CREDS=") == std::string::npos);  // it was for muster itself

  const fs::path text = place.tree().parent_path() / "text";
  std::ofstream(text) << "no program";
  fs::permissions(text, fs::perms::owner_all);
  const Answer refused = place.muster("worker '" + text.string() + "'");
  CHECK(refused.status == 1);
  CHECK(refused.err == "muster: worker text cannot be started: " + text.string() +
                           " is no program for this machine, nor a script that begins with #!\n");
}

TEST_CASE("a folder of plugins is started by up, too") {
  const Place place;
  const fs::path folder = place.tree().parent_path() / "plugins";
  fs::create_directory(folder);
  fs::create_symlink(std::string(std::getenv("MUSTER_BIN_DIR")) + "/muster-plugin-fs", folder / "muster-plugin-fs");
  std::ofstream(place.config()) << "workers: [{folder: '" << folder.string() << "'}]\n"
                                << "targets: [{name: tree, namespace: FS, config: {root: '" << place.tree().string()
                                << "'}}]\n";
  const Answer answer = place.muster("up --once -q -o json -c '" + place.config().string() + "'");
  INFO(answer.err);
  CHECK(answer.status == 0);
  CHECK(Json::parse(answer.out).size() == 2);
}
