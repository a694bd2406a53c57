#include "stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "worker_sdk/bus/nats_bus.h"

namespace muster {
namespace {

// A signal handler has no argument of its own: this is the one place with state outside objects.
std::atomic<int> signals_come{0};
std::atomic<NatsBus*> bus_to_wake{nullptr};
std::atomic<bool> second_ends{true};
std::atomic<int> exit_status{1};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<NatsBus*>::is_always_lock_free);

void on_signal(int) {
  if (signals_come.exchange(1) > 0 && second_ends.load()) _exit(1);
  if (NatsBus* bus = bus_to_wake.load()) bus->wake();
}

void on_alarm(int) {
  constexpr std::string_view kMessage =
      "threads or destructors of the plugin do not end: the process ends without them\n";
  static_cast<void>(!write(STDERR_FILENO, kMessage.data(), kMessage.size()));
  _exit(exit_status.load());
}

}  // namespace

StopSignals::StopSignals(Second second) {
  signals_come = 0;
  second_ends = second == Second::kEnds;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // plugin code need not know EINTR
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &terminate_);
  sigaction(SIGINT, &action, &interrupt_);
}

StopSignals::~StopSignals() {
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGINT, &interrupt_, nullptr);
  bus_to_wake = nullptr;
}

bool StopSignals::came() const {
  return signals_come.load() > 0;
}

void StopSignals::wake(NatsBus* bus) {
  bus_to_wake = bus;
  if (bus != nullptr && came()) bus->wake();
}

void end_process_within(std::chrono::seconds limit, int status) {
  exit_status = status;
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  alarm(static_cast<unsigned>(limit.count()));
}

}  // namespace muster
