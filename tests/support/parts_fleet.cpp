#include "support/parts_fleet.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace muster::test {
namespace {

int end(pid_t& process, int signal) {
  if (process <= 0) return 0;
  ::kill(process, signal);
  return wait_for(std::exchange(process, -1));
}

/// Returns when all of its threads stand still, or it is dead.
void pause(pid_t process) {
  ::kill(process, SIGSTOP);
  siginfo_t how{};
  ::waitid(P_PID, static_cast<id_t>(process), &how, WSTOPPED | WEXITED | WNOWAIT);
}

bool alive(pid_t process) {
  siginfo_t how{};
  return process <= 0 ||
         (::waitid(P_PID, static_cast<id_t>(process), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == 0);
}

}  // namespace

PartsFleet::PartsFleet(const std::string& more, const std::string& login)
    : nats({.config = more, .user = "", .password = "", .jetstream = true}) {
  where_ = {"--nats", "nats://" + login + "127.0.0.1:" + std::to_string(nats.port())};
}

PartsFleet::~PartsFleet() {
  for (auto& worker : workers_) end(worker, SIGKILL);
  end(coordinator_, SIGKILL);
}

void PartsFleet::configure(const std::string& yaml) {
  stop_coordinator();
  std::ofstream(directory() / "muster.yaml") << yaml;
  start_coordinator();
  if (!eventually([&] { return muster({"status"}).status != 3; })) throw std::runtime_error("no fleet: " + log());
}

int PartsFleet::stop_coordinator() {
  return end(coordinator_, SIGTERM);
}

void PartsFleet::start_coordinator() {
  auto words = command({"coordinator", "-c", directory() / "muster.yaml"});
  words.insert(words.begin(), coordinator_wrapper.begin(), coordinator_wrapper.end());
  coordinator_ = spawn({words, {}, directory() / "coordinator.out", directory() / "coordinator.err"});
}

void PartsFleet::kill_coordinator() {
  end(coordinator_, SIGKILL);
}

void PartsFleet::pause_coordinator() const {
  pause(coordinator_);
}

void PartsFleet::resume_coordinator() const {
  ::kill(coordinator_, SIGCONT);
}

std::size_t PartsFleet::start_worker(const std::vector<std::string>& args, const WorkerOptions& options) {
  const auto name = "worker" + std::to_string(workers_.size());
  std::vector<std::string> words{"worker"};
  words.insert(words.end(), args.begin(), args.end());
  auto all = command(words);
  if (!options.nats.empty()) *std::next(std::ranges::find(all, "--nats")) = options.nats;
  all.insert(all.begin(), options.wrapper.begin(), options.wrapper.end());
  workers_.push_back(spawn(
      {all, options.environment, directory() / (name + ".out"), directory() / (name + ".err"), options.as_nobody}));
  return workers_.size() - 1;
}

std::size_t PartsFleet::add_worker(const std::vector<std::string>& args, const WorkerOptions& options) {
  const auto before = active_workers();
  const auto worker = start_worker(args, options);
  if (!eventually([&] { return active_workers() > before; })) throw std::runtime_error("no worker: " + log());
  return worker;
}

void PartsFleet::signal_worker(std::size_t worker, int number) const {
  ::kill(workers_.at(worker), number);
}

void PartsFleet::drain_worker(std::size_t worker) const {
  signal_worker(worker, SIGTERM);
}

int PartsFleet::wait_worker(std::size_t worker) {
  return wait_for(std::exchange(workers_.at(worker), -1));
}

void PartsFleet::kill_worker(std::size_t worker) {
  end(workers_.at(worker), SIGKILL);
}

void PartsFleet::pause_worker(std::size_t worker) const {
  pause(workers_.at(worker));
}

void PartsFleet::resume_worker(std::size_t worker) const {
  ::kill(workers_.at(worker), SIGCONT);
}

bool PartsFleet::all_alive() const {
  return alive(coordinator_) && std::ranges::all_of(workers_, alive);
}

std::size_t PartsFleet::active_workers() const {
  std::size_t count = 0;
  for (const auto& worker : json({"workers"})) count += worker.at("state") == "active" ? 1 : 0;
  return count;
}

}  // namespace muster::test
