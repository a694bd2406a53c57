#include "stop_signals.h"

#include <unistd.h>

#include <atomic>

#include "worker_sdk/bus/nats_bus.h"

namespace muster {
namespace {

// A signal handler has no argument of its own: this is the one place with state outside objects.
std::atomic<int> signals_come{0};
std::atomic<NatsBus*> bus_to_wake{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<NatsBus*>::is_always_lock_free);

void on_signal(int) {
  if (signals_come.fetch_add(1) > 0) _exit(1);
  if (NatsBus* bus = bus_to_wake.load()) bus->wake();
}

}  // namespace

StopSignals::StopSignals() {
  signals_come = 0;
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

}  // namespace muster
