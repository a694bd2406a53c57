#include "support/parts_fleet.h"

#include <signal.h>

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

}  // namespace

PartsFleet::PartsFleet() {
  where_ = {"--nats", nats.url()};
}

PartsFleet::~PartsFleet() {
  for (auto& worker : workers_) end(worker, SIGKILL);
  end(coordinator_, SIGKILL);
}

void PartsFleet::configure(const std::string& yaml) {
  stop_coordinator();
  const auto file = directory() / "muster.yaml";
  std::ofstream(file) << yaml;
  coordinator_ = spawn(
      {command({"coordinator", "-c", file}), {}, directory() / "coordinator.out", directory() / "coordinator.err"});
  if (!eventually([&] { return muster({"status"}).status != 3; })) throw std::runtime_error("no fleet: " + log());
}

int PartsFleet::stop_coordinator() {
  return end(coordinator_, SIGTERM);
}

std::size_t PartsFleet::start_worker(const std::vector<std::string>& args, const WorkerOptions& options) {
  const auto name = "worker" + std::to_string(workers_.size());
  std::vector<std::string> words{"worker"};
  words.insert(words.end(), args.begin(), args.end());
  workers_.push_back(spawn({command(words), options.environment, directory() / (name + ".out"),
                            directory() / (name + ".err"), options.as_nobody}));
  return workers_.size() - 1;
}

std::size_t PartsFleet::add_worker(const std::vector<std::string>& args, const WorkerOptions& options) {
  const auto before = active_workers();
  const auto worker = start_worker(args, options);
  if (!eventually([&] { return active_workers() > before; })) throw std::runtime_error("no worker: " + log());
  return worker;
}

void PartsFleet::drain_worker(std::size_t worker) const {
  ::kill(workers_.at(worker), SIGTERM);
}

int PartsFleet::wait_worker(std::size_t worker) {
  return wait_for(std::exchange(workers_.at(worker), -1));
}

std::size_t PartsFleet::active_workers() const {
  std::size_t count = 0;
  for (const auto& worker : json({"workers"})) count += worker.at("state") == "active" ? 1 : 0;
  return count;
}

}  // namespace muster::test
