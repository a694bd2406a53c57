#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/cli/child.h"
#include "coordinator/cli/output_limit.h"
#include "coordinator/cli/restarts.h"
#include "worker_sdk/bus/clock.h"

namespace muster::cli {

/// In which order processes are asked to stop: each stage after the one before has ended.
enum class Stage { kWorkers, kCoordinator, kServer };

/// Keeps processes running, and stops them in order. One exists at a time: it takes over SIGINT, SIGTERM, SIGHUP and
/// SIGCHLD of the process. Thread: the one that made it, which must be the main thread; make it before other threads.
class Supervisor {
 public:
  using Log = std::function<void(const std::string& child, std::string_view line)>;

  /// `log`   gets the lines that children write, of workers as OutputLimit has it, and what happens to them
  explicit Supervisor(Log log);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts `command` and starts it again when it ends, as Restarts has it, for ever.
  void keep_running(Command command, Stage stage);

  /// Starts `command` once; take_ended() tells of its end.
  /// errors   as Child::start()
  Result<pid_t> start_once(const Command& command, Stage stage);
  struct Ended {
    pid_t pid = 0;
    std::string how;  // `exited with status 1`
  };
  std::vector<Ended> take_ended() { return std::exchange(ended_, {}); }
  /// To a process that was started once and runs.
  void signal(pid_t pid, int number) const;

  /// Makes turn() return when there is something to read.
  void watch(int descriptor) { watched_.push_back(descriptor); }

  /// One turn: sleeps until something happens, at most `longest`; passes on output, restarts what ended.
  void turn(Millis longest);

  /// Makes turn() return. Thread: any.
  void wake() const;

  /// Whether a signal asked to stop: SIGINT, SIGTERM, or SIGHUP when our terminal is gone.
  [[nodiscard]] bool stop_asked() const { return signals_ > 0; }
  /// Whether another SIGHUP has come since the last call.
  bool take_reload() { return std::exchange(reload_, false); }

  /// How often the processes of a stage have ended by themselves.
  [[nodiscard]] int ends(Stage stage) const;

  /// Of the 10 s that all stages have to stop in.
  static constexpr Millis kWorkers{8600};
  /// Asks every stage to stop and waits, for workers as long as is said, for the others 1.2 s longer, or 4.5 s where
  /// these have ended early; kills what is left, and everything at once when a second signal comes.
  void stop(Millis workers = kWorkers);

 private:
  struct Kept {
    Command command;
    Stage stage;
    std::optional<Child> child;
    TimePoint started;
    Restarts restarts;
    int ends = 0;
    bool once = false;
    OutputLimit limit{};  // of a worker: what it writes is a plugin's
  };

  void start(Kept& kept, TimePoint now);
  void reap(Kept& kept, TimePoint now);
  void reap_orphans() const;
  void pass_on(Kept& kept, std::string_view line, TimePoint now);
  void tell_left_out(Kept& kept);
  void sleep(Millis longest);
  void read_signals();
  [[nodiscard]] bool running(Stage stage) const;
  void stop_stage(Stage stage, TimePoint deadline);

  Log log_;
  std::vector<Kept> kept_;
  std::vector<Ended> ended_;
  std::vector<int> watched_;
  int signal_fd_ = -1;
  int wake_fd_ = -1;
  int signals_ = 0;
  bool stopping_ = false;
  bool reload_ = false;
  bool terminal_ = false;  // there was one when it began
};

}  // namespace muster::cli
