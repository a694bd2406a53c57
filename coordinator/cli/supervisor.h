#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/cli/child.h"
#include "worker_sdk/bus/clock.h"

namespace muster::cli {

/// In which order processes are asked to stop: each stage after the one before has ended.
enum class Stage { kWorkers, kCoordinator, kServer };

/// Keeps processes running, and stops them in order. One exists at a time: it takes over SIGINT, SIGTERM, SIGHUP and
/// SIGCHLD of the process. Thread: the one that made it, which must be the main thread; make it before other threads.
class Supervisor {
 public:
  using Log = std::function<void(const std::string& child, std::string_view line)>;

  /// `log`   gets the lines that children write, and what happens to them
  explicit Supervisor(Log log);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts `command` and starts it again when it ends: after 0.2 s, doubling to 10 s; from 0.2 s again once it has run
  /// for 30 s.
  void keep_running(Command command, Stage stage);

  /// One turn: sleeps until something happens, at most `longest`; passes on output, restarts what ended.
  void turn(Millis longest);

  /// Makes turn() return. Thread: any.
  void wake() const;

  /// Whether a signal asked to stop.
  [[nodiscard]] bool stop_asked() const { return signals_ > 0; }

  /// How often the processes of a stage have ended by themselves.
  [[nodiscard]] int ends(Stage stage) const;

  /// Asks every stage to stop and waits, 9.5 s in all at most; kills what is left, and everything at once when a
  /// second signal comes.
  void stop();

 private:
  struct Kept {
    Command command;
    Stage stage;
    std::optional<Child> child;
    TimePoint started;
    TimePoint next_start;
    Millis back_off{0};
    int ends = 0;
  };

  void start(Kept& kept, TimePoint now);
  void reap(Kept& kept, TimePoint now);
  void sleep(Millis longest);
  void read_signals();
  [[nodiscard]] bool running(Stage stage) const;
  void stop_stage(Stage stage, Millis patience);

  Log log_;
  std::vector<Kept> kept_;
  int signal_fd_ = -1;
  int wake_fd_ = -1;
  int signals_ = 0;
  bool stopping_ = false;
};

}  // namespace muster::cli
