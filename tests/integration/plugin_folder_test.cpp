// `muster worker --folder` with real processes: what is started, what is not, what takes over, what is started again.

#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "support/parts_fleet.h"

using muster::test::built;
using muster::test::PartsFleet;
using muster::test::slurp;
using Json = PartsFleet::Json;
namespace fs = std::filesystem;

namespace {

/// A fleet with a folder of plugins, most of them scripts that become a plugin of this build.
class FolderFleet : public PartsFleet {
 public:
  FolderFleet() {
    fs::create_directory(folder());
    configure("discovery: {interval: 0}\n" + targets);
  }

  [[nodiscard]] fs::path folder() const { return directory() / "plugins"; }

  /// Puts an executable into the folder, in one step.
  void put(const std::string& name, const std::string& text) const {
    const auto fresh = folder() / (name + ".new");
    std::ofstream(fresh) << text;
    fs::permissions(fresh, fs::perms::owner_all);
    fs::rename(fresh, folder() / name);
  }
  /// A script that becomes a plugin; another remark makes another version of it.
  static std::string becomes(const std::string& plugin, const std::string& remark = "") {
    return "#!/bin/sh\n# " + remark + "\nexec '" + built("muster-plugin-" + plugin).string() + "' \"$@\"\n";
  }
  /// Lists what is in the folder now.
  void list_checksums() const {
    const auto command = "cd '" + folder().string() + "' && sha256sum muster-plugin-* > .sums && mv .sums SHA256SUMS";
    REQUIRE(std::system(command.c_str()) == 0);
  }

  /// Process ids of the workers of a namespace that take jobs.
  [[nodiscard]] std::set<pid_t> active(const std::string& ns) const {
    std::set<pid_t> pids;
    for (const auto& worker : json({"workers"})) {
      if (worker.at("state") == "active" && worker.at("namespace") == ns) pids.insert(worker.at("pid").get<pid_t>());
    }
    return pids;
  }
  /// The only worker of a namespace, when there is one and it is another than that.
  pid_t await_one(const std::string& ns, pid_t but = 0) const {
    std::set<pid_t> pids;
    const bool there = eventually([&] {
      pids = active(ns);
      return pids.size() == 1 && pids.count(but) == 0;
    });
    INFO(log());
    REQUIRE(there);
    return *pids.begin();
  }
  static bool runs(pid_t pid) {
    const auto stat = slurp("/proc/" + std::to_string(pid) + "/stat");
    const auto name_end = stat.rfind(')');
    return name_end != std::string::npos && stat.at(name_end + 2) != 'Z';
  }
  /// What `muster plugins` says of a plugin that is not started; null: nothing.
  [[nodiscard]] Json quarantined(const std::string& plugin) const {
    for (const auto& item : json({"plugins"})) {
      if (item.at("plugin") == plugin && item.at("state") == "quarantined") return item;
    }
    return nullptr;
  }
  Json await_quarantine(const std::string& plugin) const {
    Json item;
    const bool there = eventually([&] { return !(item = quarantined(plugin)).is_null(); });
    INFO(log());
    REQUIRE(there);
    return item;
  }

  /// SIGTERM to `muster worker`: it ends, and with it all that it started.
  void stop_all(std::size_t host, const std::set<pid_t>& workers) {
    CHECK(stop_worker(host) == 0);
    for (const pid_t pid : workers) CHECK_FALSE(runs(pid));
  }

 private:
  const std::string targets =
      "targets: [{name: cloud, namespace: FAKE, config: {seed: 1, resources: 2400, page: 10, "
      "latency_ms: 100}}]\n";
};

}  // namespace

TEST_CASE_METHOD(FolderFleet, "every executable is started whose checksum is listed, and what is wrong is told") {
  fs::copy_file(built("muster-plugin-fs"), folder() / "muster-plugin-fs");
  put("muster-plugin-fake", becomes("fake"));
  put("muster-plugin-bad", becomes("nats"));
  list_checksums();
  const auto trace = directory() / "trace";
  put("muster-plugin-bad", "#!/bin/sh\ntouch '" + trace.string() + "'\n");
  put("new", "#!/bin/sh\ntouch '" + trace.string() + "'\n");
  std::ofstream(folder() / "notes.txt") << "not executable";
  const auto host = start_worker({"--folder", folder(), "--require-checksums"});

  std::set<pid_t> workers{await_one("FS"), await_one("FAKE")};
  const auto bad = await_quarantine("bad");
  CHECK(bad.at("reason") == "its checksum is not the one in SHA256SUMS");
  CHECK(bad.at("path") == (folder() / "muster-plugin-bad").string());
  CHECK_FALSE(bad.at("host").get<std::string>().empty());
  CHECK(quarantined("new").at("reason") == "it is not listed in SHA256SUMS");
  CHECK(log().find("worker bad: is not started: its checksum is not the one in SHA256SUMS") != std::string::npos);
  CHECK(eventually([&] { return events(0, "*.quarantined").size() == 2; }));
  CHECK_FALSE(fs::exists(trace));
  const auto table = muster({"plugins"}).out;
  CHECK(table.find("quarantined") != std::string::npos);
  CHECK(table.find("it is not listed in SHA256SUMS") != std::string::npos);

  fs::remove(folder() / "new");
  put("muster-plugin-bad", becomes("nats"));  // what the list expects
  workers.insert(await_one("NATS"));
  CHECK(eventually([&] { return quarantined("bad").is_null() && quarantined("new").is_null(); }));
  stop_all(host, workers);
}

TEST_CASE_METHOD(FolderFleet, "nothing is started where checksums are required and there are none") {
  put("fake", becomes("fake"));
  CHECK(wait_worker(start_worker({"--folder", folder(), "--require-checksums"})) == 2);
  CHECK(log().find("checksums are required, and there is no SHA256SUMS") != std::string::npos);
  CHECK(wait_worker(start_worker({"--folder", directory() / "nowhere"})) == 2);
  CHECK(wait_worker(start_worker({"fake", "--folder", folder()})) == 2);
  CHECK(wait_worker(start_worker({})) == 2);
  if (!fs::exists("/sys/fs/cgroup/cgroup.controllers")) {
    CHECK(wait_worker(start_worker({"--folder", folder(), "--cpu", "0.5"})) == 2);
    CHECK(log().find("a limit of CPU needs a cgroup v2") != std::string::npos);
  }
}

TEST_CASE_METHOD(FolderFleet, "what keeps dying is quarantined, beside what does not") {
  const auto trace = directory() / "trace";
  put("fake", becomes("fake"));
  put("dying", "#!/bin/sh\necho started >> '" + trace.string() + "'\necho last words >&2\nexit 3\n");
  const auto host = start_worker({"--folder", folder()});
  const pid_t fake = await_one("FAKE");
  const auto dying = await_quarantine("dying");
  CHECK(dying.at("reason") == "ended 5 times within 60 s, at last: exited with status 3");
  CHECK(dying.at("restarts") == 5);
  CHECK(log().find("worker dying: last words") != std::string::npos);
  CHECK(eventually([&] { return !events(0, "*.quarantined").empty(); }));
  const auto told = events(0, "*.quarantined");
  REQUIRE(told.size() == 1);
  CHECK(told[0].at("subject") == "dying");
  const auto starts = [&] {
    const auto text = slurp(trace);
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(starts() == 5);

  signal_worker(host, SIGHUP);
  CHECK(eventually([&] { return starts() == 10; }));
  put("dying", becomes("nats"));
  const pid_t mended = await_one("NATS");
  CHECK(active("FAKE") == std::set<pid_t>{fake});
  stop_all(host, {fake, mended});
}

TEST_CASE_METHOD(FolderFleet, "a new version takes over in the middle of a run, and a broken one does not") {
  put("fake", becomes("fake", "0"));
  const auto host = start_worker({"--folder", folder()});
  pid_t worker = await_one("FAKE");
  REQUIRE(discover({"--target", "cloud"}).at("state") == "complete");  // the first run is over
  const auto before = last_event();

  // A run that lasts as long as a machine takes to start a process, at the third try at the latest.
  bool spanned = false;
  for (int version = 1; version <= 3 && !spanned; ++version) {
    const auto id = json({"discover"}).at("run").get<std::string>();
    put("fake", becomes("fake", std::to_string(version)));
    const pid_t old = worker;
    worker = await_one("FAKE", old);
    CHECK(eventually([&] { return !runs(old); }));
    spanned = json({"run", id}).at("state") == "running";
    Json run;
    REQUIRE(eventually([&] { return (run = json({"run", id})).at("state") != "running"; }));
    INFO(run.dump(2));
    CHECK(run.at("state") == "complete");
    CHECK(run.at("problems").empty());
  }
  CHECK(spanned);
  CHECK(resources().size() == 2400);
  CHECK(events(before, "*job.*").empty());  // neither failed nor tried again

  put("fake", "#!/bin/sh\nexit 1\n");
  CHECK(await_quarantine("fake").at("workers") == 1);
  CHECK(active("FAKE") == std::set<pid_t>{worker});
  CHECK(discover({"--target", "cloud"}).at("state") == "complete");

  fs::remove(folder() / "fake");
  CHECK(eventually([&] { return !runs(worker) && quarantined("fake").is_null(); }));
  CHECK(active("FAKE").empty());
  stop_all(host, {});
}

TEST_CASE_METHOD(FolderFleet, "what runs is looked after while much is read, and all of it ends when asked to") {
  put("fake", becomes("fake"));
  const auto host = start_worker({"--folder", folder()});
  pid_t worker = await_one("FAKE");
  constexpr int kFiles = 64;
  const auto put_large = [&](const std::string& name) {
    put(name + ".new", "");
    fs::resize_file(folder() / (name + ".new"), 1ULL << 30);  // a hole, which takes as long to read as anything
    fs::rename(folder() / (name + ".new"), folder() / name);
  };
  for (int i = 0; i < kFiles; ++i) put_large("large" + std::to_string(i));
  const auto told = [&] {
    const auto text = log();
    int count = 0;
    for (int i = 0; i < kFiles; ++i) count += text.find("worker large" + std::to_string(i) + ":") != std::string::npos;
    return count;
  };
  put("fs", becomes("fs"));
  const pid_t fresh = await_one("FS");  // put there last, and not behind them
  ::kill(worker, SIGKILL);
  worker = await_one("FAKE", worker);
  put_large("fake");
  ::kill(worker, SIGKILL);
  worker = await_one("FAKE", worker);  // of what was read, not of what has its name
  CHECK(told() < kFiles);
  stop_all(host, {worker, fresh});
  CHECK(told() < kFiles);
}

TEST_CASE_METHOD(FolderFleet, "a worker that does not answer any more is replaced") {
  put("fake", becomes("fake"));
  const auto host = start_worker({"--folder", folder()});
  const pid_t stopped = await_one("FAKE");
  ::kill(stopped, SIGSTOP);
  const pid_t fresh = await_one("FAKE", stopped);
  CHECK_FALSE(runs(stopped));
  CHECK(log().find("worker fake: did not answer any more: killed") != std::string::npos);
  stop_all(host, {fresh});
}

TEST_CASE_METHOD(FolderFleet, "no worker outlives its supervisor, whoever stands between them") {
  put("fake", "#!/bin/sh\n'" + built("muster-plugin-fake").string() + "' \"$@\"\n");  // a process of its own
  const auto host = start_worker({"--folder", folder()});
  const pid_t worker = await_one("FAKE");
  kill_worker(host);
  CHECK(eventually([&] { return !runs(worker); }));
}

TEST_CASE_METHOD(FolderFleet, "memory has a limit in each process") {
  const auto trace = directory() / "trace";
  put("limited", "#!/bin/sh\nulimit -d > '" + trace.string() + "'\nexec sleep 1000\n");
  const auto host = start_worker({"--folder", folder(), "--memory", "64MiB"});
  CHECK(eventually([&] { return slurp(trace) == "65536\n"; }));
  stop_all(host, {});
}
