#include "simulation/worker_process.h"

#include <algorithm>

#include <spdlog/spdlog.h>

namespace muster::sim {
namespace {

/// A journal on a disk that takes its time before something is begun.
class SlowJournal final : public Journal {
 public:
  SlowJournal(std::shared_ptr<testing::MemoryDisk> disk, const Millis& slow, HostClock& clock, Random& random)
      : journal_(std::move(disk)), slow_(slow), clock_(clock), random_(random) {}

  Result<void> begin(const Token& token) override {
    if (slow_.count() > 0) clock_.wait(Millis(random_.below(static_cast<std::uint64_t>(slow_.count()))));
    return journal_.begin(token);
  }
  Result<void> finish(const Token& token, const Bytes& reply) override { return journal_.finish(token, reply); }
  void remove(const Token& token) override { journal_.remove(token); }
  std::vector<Kept> take_over(Room room, const Wanted& wanted) override { return journal_.take_over(room, wanted); }

 private:
  testing::MemoryJournal journal_;
  const Millis& slow_;
  HostClock& clock_;
  Random& random_;
};

}  // namespace

void VirtualExecutor::submit(Work work) {
  // Mostly quick; now and then so slow that `accepted` and heartbeats matter.
  const auto slow = random_.below(20) == 0;
  work_.emplace(clock_.now() + Millis(slow ? random_.below(5000) : random_.below(20)), std::move(work));
}

TimePoint VirtualExecutor::next_due() const {
  const auto begins = work_.empty() ? TimePoint::max() : work_.begin()->first;
  return finished_.empty() ? begins : std::min(begins, finished_.begin()->first);
}

std::optional<Work> VirtualExecutor::take_due() {
  if (work_.empty() || work_.begin()->first > clock_.now()) return std::nullopt;
  return std::move(work_.extract(work_.begin()).mapped());
}

void VirtualExecutor::finish(Token token, Outcome outcome) {
  finished_.emplace(clock_.now(), std::pair(std::move(token), std::move(outcome)));
  clock_.catch_up();
}

std::optional<std::pair<Token, Outcome>> VirtualExecutor::take_finished() {
  if (finished_.empty() || finished_.begin()->first > clock_.now()) return std::nullopt;
  return std::move(finished_.extract(finished_.begin()).mapped());
}

WorkerProcess::WorkerProcess(const Setup& setup)
    : clock_(setup.clock),
      plugin_(Cloud::plugin_info(setup.version)),
      host_{setup.disk, {}, false, &clock_},
      executor_(clock_, setup.random),
      bus_(setup.broker.connect(setup.name)) {
  bus_->set_max_payload(setup.max_payload);
  setup.cloud.serve(plugin_, setup.random, setup.weather);
  setup.objects.serve(plugin_, setup.random, setup.weather, host_);
  WorkerCore::Options options;
  options.subjects = Subjects("sim");
  options.id = WorkerId(make_token(setup.random));
  options.slots = static_cast<std::uint16_t>(1 + setup.random.below(4));
  options.waiting_room = setup.waiting_room;
  options.started = setup.clock.wall();
  options.journal = std::make_shared<SlowJournal>(setup.disk, setup.slow_disk, clock_, setup.random);
  options.clock = &clock_;
  options.secrets.env = {"SIM_*"};
  core_ = std::make_unique<WorkerCore>(std::move(options), plugin_, *bus_, setup.random, executor_, setup.log);
  core_->start(clock_.now()).value();
}

bool WorkerProcess::turn(TimePoint now) {
  std::vector<Message> inbox;
  bus_->receive(inbox, 1000);
  for (const auto& message : inbox) core_->handle(message, now);
  while (auto work = executor_.take_due()) {
    host_.token = work->token;
    auto outcome = work->run();
    if (host_.dies) {
      host_.disk->broken = false;
      return false;
    }
    executor_.finish(work->token, std::move(outcome));
  }
  while (auto finished = executor_.take_finished()) core_->complete(finished->first, std::move(finished->second), now);
  core_->tick(now);
  return !core_->ended();
}

TimePoint WorkerProcess::next_due() const {
  return std::min(core_->next_due(), executor_.next_due());
}

}  // namespace muster::sim
