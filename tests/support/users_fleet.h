#pragma once

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/fleet_client.h"

namespace muster::test {

using Variables = std::map<std::string, std::string>;

/// Processes of a fleet, each with an environment of its own. What is left of them is killed at the end.
class UsersFleet : public FleetClient {
 public:
  /// `url`   empty: the environments say where the bus is
  explicit UsersFleet(const std::string& url) {
    if (!url.empty()) where_ = {"--nats", url};
  }
  ~UsersFleet() {
    for (const pid_t process : processes_) {
      ::kill(process, SIGKILL);
      wait_for(process);
    }
  }

  void start(const std::string& name, const std::vector<std::string>& words, const Variables& environment) {
    processes_.push_back(
        spawn({command(words), environment, directory() / (name + ".out"), directory() / (name + ".err")}));
  }

  /// The plugin's own executable.
  void start_plugin(const std::string& name, const std::vector<std::string>& args, const Variables& environment) {
    std::vector<std::string> words{built("muster-plugin-" + name), "--data-dir", directory() / "data"};
    words.insert(words.end(), args.begin(), args.end());
    processes_.push_back(spawn({words, environment, directory() / (name + ".out"), directory() / (name + ".err")}));
  }

  /// `muster WORDS` with this environment.
  [[nodiscard]] Answer ask(const std::vector<std::string>& words, const Variables& environment) const {
    const auto out = directory() / "answer", err = directory() / "answer-err";
    std::filesystem::remove(out);
    std::filesystem::remove(err);
    Answer answer;
    answer.status = wait_for(spawn({question(words), environment, out, err}));
    answer.out = slurp(out);
    answer.err = slurp(err);
    std::ofstream(directory() / "cli.err", std::ios::app) << answer.err;
    return answer;
  }
  [[nodiscard]] Json ask_json(std::vector<std::string> words, const Variables& environment) const {
    words.insert(words.end(), {"-o", "json"});
    const auto answer = ask(words, environment);
    INFO(answer.err << log());
    REQUIRE_FALSE(answer.out.empty());
    return Json::parse(answer.out);
  }

  /// Starts a coordinator that looks at a directory and at `more` targets; returns when `cli` gets an answer.
  void start_coordinator(const Variables& environment, const Variables& cli, const std::string& more = "") {
    std::filesystem::create_directories(directory() / "tree");
    std::ofstream(directory() / "tree" / "file") << "x";
    const auto config = directory() / "muster.yaml";
    std::ofstream(config) << "discovery: {interval: 0s}\ntargets:\n  - {name: tree, namespace: FS, config: {root: \""
                          << (directory() / "tree").string() << "\"}}\n"
                          << more;
    start("coordinator", {"coordinator", "-c", config}, environment);
    const bool up = eventually([&] { return ask({"status"}, cli).status != 3; });
    INFO(log());
    REQUIRE(up);
  }
  void await_workers(std::size_t count, const Variables& cli) const {
    const bool there = eventually([&] { return ask_json({"workers"}, cli).size() == count; });
    INFO(log());
    REQUIRE(there);
  }

  /// Coordinator, a worker and the command line, each with its own way in: one does its work for the other.
  void work(const Variables& coordinator, const Variables& worker, const Variables& cli) {
    start_coordinator(coordinator, cli);
    start("worker", {"worker", "fs"}, worker);
    await_workers(1, cli);
    const auto report = ask_json({"discover", "--wait"}, cli);
    CHECK(report["state"] == "complete");
    CHECK(ask_json({"resources"}, cli).size() == 2);
  }

 private:
  std::vector<pid_t> processes_;
};

}  // namespace muster::test
