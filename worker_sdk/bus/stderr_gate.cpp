#include "worker_sdk/bus/stderr_gate.h"

#include <poll.h>
#include <unistd.h>

namespace muster {
namespace {

constexpr int kMomentMillis = 200;

}  // namespace

bool StderrGate::open() {
  pollfd error{STDERR_FILENO, POLLOUT, 0};
  stuck_ = poll(&error, 1, stuck_ ? 0 : kMomentMillis) == 0;
  return !stuck_;
}

}  // namespace muster
