#include "coordinator/cli/supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

namespace muster::cli {
namespace {

using std::chrono::steady_clock;

constexpr Millis kFirstBackOff{200};
constexpr Millis kLastBackOff{10'000};
constexpr Millis kHealthy{30'000};

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  return set;
}

}  // namespace

Supervisor::Supervisor(Log log) : log_(std::move(log)) {
  const sigset_t set = handled_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signal_fd_ < 0 || wake_fd_ < 0) throw std::runtime_error("no descriptors left");
}

Supervisor::~Supervisor() {
  kept_.clear();
  close(signal_fd_);
  close(wake_fd_);
}

void Supervisor::keep_running(Command command, Stage stage) {
  kept_.push_back({std::move(command), stage, std::nullopt, {}, {}, Millis{0}, 0});
  start(kept_.back(), steady_clock::now());
}

void Supervisor::start(Kept& kept, TimePoint now) {
  auto child = Child::start(kept.command);
  kept.started = now;
  if (child) {
    kept.child = std::move(*child);
    return;
  }
  log_(kept.command.name, "cannot be started: " + child.error().message);
  kept.back_off = std::clamp(kept.back_off * 2, kFirstBackOff, kLastBackOff);
  kept.next_start = now + kept.back_off;
  ++kept.ends;
}

void Supervisor::reap(Kept& kept, TimePoint now) {
  int status = 0;
  if (!kept.child || !kept.child->ended(status)) return;
  kept.child->read_lines([&](std::string_view line) { log_(kept.command.name, line); });
  kept.child.reset();
  if (stopping_) return;
  ++kept.ends;
  kept.back_off =
      now - kept.started > kHealthy ? kFirstBackOff : std::clamp(kept.back_off * 2, kFirstBackOff, kLastBackOff);
  kept.next_start = now + kept.back_off;
  log_(kept.command.name, describe_exit(status) + "; starts again in " + std::to_string(kept.back_off.count()) + " ms");
}

void Supervisor::turn(Millis longest) {
  if (!stopping_) {
    for (const Kept& kept : kept_) {
      if (kept.child) continue;
      longest = std::min(longest, std::chrono::ceil<Millis>(kept.next_start - steady_clock::now()));
    }
  }
  sleep(std::max(longest, Millis{0}));
  const TimePoint now = steady_clock::now();
  for (Kept& kept : kept_) {
    if (kept.child) kept.child->read_lines([&](std::string_view line) { log_(kept.command.name, line); });
    reap(kept, now);
    if (!kept.child && !stopping_ && kept.next_start <= now) start(kept, now);
  }
}

void Supervisor::sleep(Millis longest) {
  std::vector<pollfd> watched{{signal_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  for (const Kept& kept : kept_) {
    if (kept.child && kept.child->output() >= 0) watched.push_back({kept.child->output(), POLLIN, 0});
  }
  poll(watched.data(), watched.size(), static_cast<int>(longest.count()));
  eventfd_t ignored = 0;
  eventfd_read(wake_fd_, &ignored);
  read_signals();
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) ++signals_;
  }
}

void Supervisor::wake() const {
  eventfd_write(wake_fd_, 1);
}

int Supervisor::ends(Stage stage) const {
  int sum = 0;
  for (const Kept& kept : kept_) sum += kept.stage == stage ? kept.ends : 0;
  return sum;
}

bool Supervisor::running(Stage stage) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const Kept& kept) { return kept.stage == stage && kept.child.has_value(); });
}

void Supervisor::stop() {
  stopping_ = true;
  stop_stage(Stage::kWorkers, Millis{5000});
  stop_stage(Stage::kCoordinator, Millis{3000});
  stop_stage(Stage::kServer, Millis{1500});
}

void Supervisor::stop_stage(Stage stage, Millis patience) {
  const TimePoint deadline = steady_clock::now() + patience;
  for (const Kept& kept : kept_) {
    if (kept.stage == stage && kept.child) kept.child->signal(SIGTERM);
  }
  while (running(stage) && steady_clock::now() < deadline && signals_ < 2) {
    turn(std::chrono::ceil<Millis>(deadline - steady_clock::now()));
  }
  for (Kept& kept : kept_) {
    if (kept.stage != stage || !kept.child) continue;
    log_(kept.command.name, signals_ < 2 ? "does not stop: killed" : "killed");
    kept.child.reset();
  }
}

}  // namespace muster::cli
