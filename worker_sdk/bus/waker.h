#pragma once

#include <atomic>

namespace muster {

/// Wakes a thread that sleeps in poll() on fd(). Thread: any; wake() is async-signal-safe.
class Waker {
 public:
  Waker();  // throws std::system_error when the process has no file descriptor left
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  void wake() noexcept;
  void clear() noexcept;

  /// For callers that leave a flag which the loop looks at before it sleeps: saves the system call while it is awake.
  void wake_if_asleep() noexcept {
    if (asleep_) wake();
  }
  void set_asleep(bool asleep) noexcept { asleep_ = asleep; }

 private:
  int fd_;
  std::atomic<bool> asleep_{false};
};

}  // namespace muster
