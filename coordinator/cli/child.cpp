#include "coordinator/cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace muster::cli {
namespace {

constexpr std::size_t kLongestLine = 16 * 1024;
constexpr int kReads = 16;        // of a turn, 4 KiB each
constexpr int kTurnsOfRest = 16;  // the largest pipe that the kernel allows holds 1 MiB

Error system_error(const std::string& what) {
  return {Errc::kInternalFailure, what + ": " + std::strerror(errno)};
}

/// Of this machine, and no fault of what was to be started.
Error shortage(const std::string& what) {
  return {Errc::kLimit, what + ": " + std::strerror(errno)};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Returns only when that fails.
void execute(int descriptor, char** argv, char** env) {
  if (descriptor < 0) {
    execve(argv[0], argv, env);
    return;
  }
  fexecve(descriptor, argv, env);
  if (errno != ENOENT) return;
  fcntl(descriptor, F_SETFD, 0);  // a script: its interpreter opens the descriptor by name
  fexecve(descriptor, argv, env);
}

std::vector<std::string> environment_block(const Environment& env) {
  std::vector<std::string> block;
  block.reserve(env.size());
  for (const auto& [name, value] : env) block.push_back(name + "=" + value);
  return block;
}

Error no_group() {
  return {Errc::kUnsupported, "CPU cannot be limited: there is no cgroup for it", {}, 0};
}

/// Limits what this process may write to in memory; 0 or errno.
int limit_memory(std::uint64_t bytes) {
  // What is private and writable. RLIMIT_AS would also count what a process merely has mapped.
  const rlimit limit{bytes, bytes};
  return bytes == 0 || setrlimit(RLIMIT_DATA, &limit) == 0 ? 0 : errno;
}

/// Moves this process into a group; 0 or errno.
int join(int group) {
  return group < 0 || write(group, "0", 1) == 1 ? 0 : errno;
}

/// The file by which a process joins the group of a command.
std::string joining_file(const Command& command) {
  return command.group + "/cgroup.procs";
}

/// What a new process tells of why it is none of the program that it was to be.
struct Failure {
  enum class Step { kGroup, kMemory, kProgram };
  Step step = Step::kProgram;
  int error = 0;
};

Error describe(const Failure& failure, const Command& command) {
  errno = failure.error;
  if (failure.step == Failure::Step::kGroup) return system_error(joining_file(command));
  if (failure.step == Failure::Step::kMemory) return system_error("memory cannot be limited");
  const std::string& program = command.argv.front();
  if (failure.error == ENOEXEC) {
    return {Errc::kInternalFailure, program + " is no program for this machine, nor a script that begins with #!"};
  }
  if (failure.error == ENOENT && access(program.c_str(), F_OK) == 0) {
    return {Errc::kInternalFailure, program + " is there, and the interpreter or loader that it names is not"};
  }
  errno = failure.error;
  return system_error(program);
}

/// What the new process does before it becomes another program: only what is allowed after fork() beside threads.
[[noreturn]] void become(const Command& command, int group, char** argv, char** env, int output, int failure,
                         pid_t parent) {
  Failure what;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) {  // else the parent ended before the line above
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if ((what.error = join(group)) != 0) {
      what.step = Failure::Step::kGroup;
    } else if ((what.error = limit_memory(command.limits.memory)) != 0) {
      what.step = Failure::Step::kMemory;
    } else {
      execute(command.executable, argv, env);
      what.error = errno;
    }
  }
  [[maybe_unused]] const ssize_t written = write(failure, &what, sizeof what);
  _exit(127);
}

}  // namespace

Error replace_process(Command command) {
  if (command.limits.cpu > 0) return no_group();
  if (const int error = limit_memory(command.limits.memory); error != 0) {
    return describe({Failure::Step::kMemory, error}, command);
  }
  std::vector<std::string> settings = environment_block(command.env);
  const std::vector<char*> argv = pointers(command.argv);
  const std::vector<char*> env = pointers(settings);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  execute(command.executable, const_cast<char**>(argv.data()), const_cast<char**>(env.data()));
  return describe({Failure::Step::kProgram, errno}, command);
}

Result<Child> Child::start(const Command& command) {
  if (command.limits.cpu > 0 && command.group.empty()) return no_group();
  // Before anything runs: what was to be limited never runs without its limits.
  const int group = command.group.empty() ? -1 : open(joining_file(command).c_str(), O_WRONLY | O_CLOEXEC);
  if (group < 0 && !command.group.empty()) return system_error(joining_file(command));
  auto child = start_in(command, group);
  if (group >= 0) close(group);
  return child;
}

Result<Child> Child::start_in(const Command& command, int group) {
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> settings = environment_block(command.env);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> env = pointers(settings);
  std::array<int, 2> output{};
  std::array<int, 2> failure{};  // tells an exec that failed from one that worked: it closes the pipe
  if (pipe2(output.data(), O_CLOEXEC) != 0) return shortage("pipe");
  if (pipe2(failure.data(), O_CLOEXEC) != 0) {
    const auto no_pipe = shortage("pipe");
    close(output[0]);
    close(output[1]);
    return no_pipe;
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become(command, group, const_cast<char**>(argv.data()), const_cast<char**>(env.data()), output[1], failure[1],
           parent);
  }
  Failure what{Failure::Step::kProgram, errno};
  const auto no_process = shortage("fork");
  close(output[1]);
  close(failure[1]);
  const bool failed = pid < 0 || read(failure[0], &what, sizeof what) == sizeof what;
  close(failure[0]);
  Child child(pid, output[0]);
  if (pid < 0) return no_process;
  if (failed) return describe(what, command);
  fcntl(child.output_, F_SETFL, O_NONBLOCK);
  return child;
}

Child::~Child() {
  if (pid_ > 0) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
}

bool Child::read_lines(const std::function<void(std::string_view line)>& use) {
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  int reads = 0;
  while (output_ >= 0 && reads++ < kReads && (count = read(output_, buffer.data(), buffer.size())) > 0) {
    pending_.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      use(std::string_view(pending_).substr(begin, end - begin));
    }
    pending_.erase(0, begin);
    if (pending_.size() > kLongestLine) use(std::exchange(pending_, {}));
  }
  if (count == 0 && output_ >= 0) {
    if (!pending_.empty()) use(std::exchange(pending_, {}));
    close(std::exchange(output_, -1));
  }
  return output_ >= 0 && count > 0;
}

void Child::read_rest(const std::function<void(std::string_view line)>& use) {
  for (int turn = 0; turn < kTurnsOfRest && read_lines(use); ++turn) {
  }
  if (!pending_.empty()) use(std::exchange(pending_, {}));
}

void Child::signal(int number) const {
  if (pid_ <= 0) return;
  kill(pid_, number);
  if (number == SIGKILL) kill(-pid_, number);
}

bool Child::ended(int& status) {
  if (pid_ <= 0) return true;
  siginfo_t how{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG | WNOWAIT) != 0 || how.si_pid != pid_) {
    return false;
  }
  kill(-pid_, SIGKILL);  // while it is a zombie: nobody else can have its number
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return true;
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace muster::cli
