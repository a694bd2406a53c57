#include "coordinator/cli/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "coordinator/cli/output.h"
#include "worker_sdk/bus/drain.h"

namespace muster::cli {
namespace {

using std::chrono::steady_clock;

constexpr Millis kCoordinator{3000}, kServer{1500};  // to stop in
constexpr Millis kLeast{600};                        // the same, where the workers have taken all of their time
static_assert(Supervisor::kWorkers >= kDrainLimit - kStopBeforeLimit + Millis{500},
              "jobs are told to stop, and answered, before their worker is killed");
static_assert(Supervisor::kWorkers + 2 * kLeast <= Millis{10'000}, "the promise is 10 s for all");

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  return set;
}

bool has_terminal() {
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

}  // namespace

Supervisor::Supervisor(Log log) : log_(std::move(log)), terminal_(has_terminal()) {
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
  kept_.push_back({std::move(command), stage, std::nullopt, {}, {}, 0, false});
  start(kept_.back(), steady_clock::now());
}

Result<pid_t> Supervisor::start_once(const Command& command, Stage stage) {
  auto child = Child::start(command);
  if (!child) return child.error();
  const pid_t pid = child->pid();
  kept_.push_back({command, stage, std::move(*child), steady_clock::now(), {}, 0, true});
  return pid;
}

void Supervisor::signal(pid_t pid, int number) const {
  for (const Kept& kept : kept_) {
    if (kept.once && kept.child && kept.child->pid() == pid) kept.child->signal(number);
  }
}

void Supervisor::start(Kept& kept, TimePoint now) {
  auto child = Child::start(kept.command);
  kept.started = now;
  if (child) {
    kept.child = std::move(*child);
    return;
  }
  log_(kept.command.name, "cannot be started: " + child.error().message);
  kept.restarts.ended(Millis{0}, now);
  ++kept.ends;
}

void Supervisor::pass_on(Kept& kept, std::string_view line, TimePoint now) {
  if (kept.stage == Stage::kWorkers && !kept.limit.admit(escape(line).size(), now)) return;
  tell_left_out(kept);
  log_(kept.command.name, line);
}

void Supervisor::tell_left_out(Kept& kept) {
  const auto bytes = kept.limit.take_left_out();
  if (bytes > 0) log_(kept.command.name, std::to_string(bytes) + " bytes of its output were left out");
}

void Supervisor::reap(Kept& kept, TimePoint now) {
  int status = 0;
  const pid_t pid = kept.child ? kept.child->pid() : -1;
  if (!kept.child || !kept.child->ended(status)) return;
  kept.child->read_rest([&](std::string_view line) { pass_on(kept, line, now); });
  tell_left_out(kept);
  kept.child.reset();
  if (stopping_) return;
  ++kept.ends;
  if (kept.once) {
    ended_.push_back({pid, describe_exit(status)});
    return;
  }
  kept.restarts.ended(std::chrono::duration_cast<Millis>(now - kept.started), now);
  log_(kept.command.name,
       describe_exit(status) + "; starts again in " + std::to_string(kept.restarts.back_off().count()) + " ms");
}

/// What processes leave behind at their end becomes a child of this one where it is the first of a container, and keeps
/// its number until it is waited for.
void Supervisor::reap_orphans() const {
  siginfo_t ended{};
  while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
    const auto is_kept = [&](const Kept& kept) { return kept.child && kept.child->pid() == ended.si_pid; };
    if (std::ranges::any_of(kept_, is_kept)) return;  // it has ended since it was looked at: the next turn is its own
    waitpid(std::exchange(ended, {}).si_pid, nullptr, 0);
  }
}

void Supervisor::turn(Millis longest) {
  if (!stopping_) {
    for (const Kept& kept : kept_) {
      if (kept.child) continue;
      longest = std::min(longest, std::chrono::ceil<Millis>(kept.restarts.next_start() - steady_clock::now()));
    }
  }
  sleep(std::max(longest, Millis{0}));
  const TimePoint now = steady_clock::now();
  for (Kept& kept : kept_) {
    if (kept.child) kept.child->read_lines([&](std::string_view line) { pass_on(kept, line, now); });
    reap(kept, now);
    if (!kept.child && !kept.once && !stopping_ && kept.restarts.next_start() <= now) start(kept, now);
  }
  reap_orphans();
  std::erase_if(kept_, [](const Kept& kept) { return kept.once && !kept.child; });
}

void Supervisor::sleep(Millis longest) {
  std::vector<pollfd> watched{{signal_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  for (const Kept& kept : kept_) {
    if (kept.child && kept.child->output() >= 0) watched.push_back({kept.child->output(), POLLIN, 0});
  }
  for (const int descriptor : watched_) watched.push_back({descriptor, POLLIN, 0});
  poll(watched.data(), watched.size(), static_cast<int>(longest.count()));
  eventfd_t ignored = 0;
  eventfd_read(wake_fd_, &ignored);
  read_signals();
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (info.ssi_signo == SIGHUP && (!terminal_ || has_terminal())) {
      reload_ = true;
    } else {
      ++signals_;
    }
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

void Supervisor::stop(Millis workers) {
  stopping_ = true;
  const TimePoint end = steady_clock::now() + workers;
  stop_stage(Stage::kWorkers, end);
  stop_stage(Stage::kCoordinator, std::min(steady_clock::now() + kCoordinator, end + kLeast));
  stop_stage(Stage::kServer, std::min(steady_clock::now() + kServer, end + 2 * kLeast));
}

void Supervisor::stop_stage(Stage stage, TimePoint deadline) {
  for (const Kept& kept : kept_) {
    if (kept.stage == stage && kept.child) kept.child->signal(SIGTERM);
  }
  while (running(stage) && steady_clock::now() < deadline && signals_ < 2) {
    turn(std::chrono::ceil<Millis>(deadline - steady_clock::now()));
  }
  for (Kept& kept : kept_) {
    if (kept.stage != stage || !kept.child) continue;
    tell_left_out(kept);
    log_(kept.command.name, signals_ < 2 ? "does not stop: killed" : "killed");
    kept.child.reset();
  }
}

}  // namespace muster::cli
