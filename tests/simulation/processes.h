#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace muster::sim {

/// Runs tasks in processes of their own, some at once: all cores are used, and one that crashes takes nobody with it.
/// Throws std::system_error when the machine has no room for another. Thread: one, and no other when a task begins.
class Processes {
 public:
  using Task = std::function<std::string()>;
  struct Ended {
    std::size_t task = 0;
    std::string said;  // what the task returned
    std::string died;  // how its process ended, when not in order
  };

  /// `room`   tasks at once, at least 1
  explicit Processes(unsigned room) : room_(room) {}
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  [[nodiscard]] bool full() const { return running_.size() >= room_; }
  [[nodiscard]] bool empty() const { return running_.empty(); }
  /// Begins a task; only when not full().
  void start(std::size_t number, const Task& task);
  /// Waits until some task ends; only when not empty().
  Ended wait();

 private:
  struct Running {
    std::size_t task;
    pid_t process;
    std::string said;
  };

  unsigned room_;
  std::map<int, Running> running_;  // by the pipe that it speaks through
};

}  // namespace muster::sim
