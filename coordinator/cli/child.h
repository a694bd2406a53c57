#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/cli/settings.h"
#include "schema/result.h"

namespace muster::cli {

/// What is to be started.
struct Command {
  std::string name;               // for people: `worker fs`
  std::vector<std::string> argv;  // argv[0] is the path of the executable
  Environment env;                // all of it
  int executable = -1;            // a descriptor, of the caller: what it is open on is run, whatever argv[0] names
  ProcessLimits limits{};         // `cpu` needs a group
  std::string group{};            // directory of the cgroup that it joins; empty: that of this process
};

/// Becomes what is to be started, in place of this process; `group` does not count.
/// returns   why not, as Child::start() says it
Error replace_process(Command command);

/// A running process whose stdout and stderr we read. It is in a process group of its own, so that Ctrl-C reaches it
/// through us only, and the kernel kills it when the thread that started it ends, however that happens. What it has
/// started is killed when it has ended, but for what has left that group.
class Child {
 public:
  /// errors   kLimit: no process or pipe to be had; kInternalFailure: the executable cannot be run, a limit cannot be
  ///          set; kUnsupported: a limit of CPU without a group
  static Result<Child> start(const Command& command);

  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        output_(std::exchange(other.output_, -1)),
        pending_(std::move(other.pending_)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(output_, other.output_);
    std::swap(pending_, other.pending_);
    return *this;
  }
  ~Child();  // kills what still runs

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int output() const { return output_; }  // readable when there is output or its end; -1 after the end

  /// Calls `use` for each whole line that has come; the rest of the last line at the end of the output. Reads 64 KiB at
  /// most, so that who writes without end keeps nobody from other things: output() stays readable.
  /// returns   whether it stopped at that
  bool read_lines(const std::function<void(std::string_view line)>& use);
  /// The same with all that a process has left that has ended: 1 MiB at most, the most that the kernel keeps of it.
  void read_rest(const std::function<void(std::string_view line)>& use);

  /// SIGKILL goes to what it has started, too; of any other signal it tells them what it likes.
  void signal(int number) const;
  /// Whether it has ended; `status` then gets what waitpid() said, and what it has started is killed.
  bool ended(int& status);

 private:
  static Result<Child> start_in(const Command& command, int group);
  Child(pid_t pid, int output) : pid_(pid), output_(output) {}

  pid_t pid_ = -1;
  int output_ = -1;
  std::string pending_;  // a line that has not ended
};

/// `exited with status 1`, `killed by signal 9`.
std::string describe_exit(int status);

}  // namespace muster::cli
