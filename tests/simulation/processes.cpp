#include "simulation/processes.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <system_error>
#include <vector>

namespace muster::sim {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

[[noreturn]] void speak(int pipe, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const auto now = ::write(pipe, text.data() + written, text.size() - written);
    if (now < 0 && errno != EINTR) std::abort();
    if (now > 0) written += static_cast<std::size_t>(now);
  }
  std::exit(0);  // with the checks that sanitizers make at the end
}

/// Empty: in order.
std::string how_it_ended(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  if (WIFSIGNALED(status)) return "died of signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Processes::~Processes() {
  for (const auto& [pipe, each] : running_) {
    ::close(pipe);
    ::kill(each.process, SIGKILL);
    ::waitpid(each.process, nullptr, 0);
  }
}

void Processes::start(std::size_t number, const Task& task) {
  std::cout.flush();  // or both would say it
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) < 0) fail("pipe");
  const auto process = ::fork();
  if (process < 0) fail("fork");
  if (process == 0) {
    ::close(ends[0]);
    speak(ends[1], task());
  }
  ::close(ends[1]);
  running_[ends[0]] = {number, process, {}};
}

Processes::Ended Processes::wait() {
  for (;;) {
    std::vector<pollfd> pipes;
    for (const auto& [pipe, each] : running_) pipes.push_back({pipe, POLLIN, 0});
    if (::poll(pipes.data(), pipes.size(), -1) < 0 && errno != EINTR) fail("poll");
    for (const auto& each : pipes) {
      if (each.revents == 0) continue;
      std::array<char, 4096> buffer{};
      const auto size = ::read(each.fd, buffer.data(), buffer.size());
      if (size > 0) running_.at(each.fd).said.append(buffer.data(), static_cast<std::size_t>(size));
      if (size > 0 || (size < 0 && errno == EINTR)) continue;
      auto ended = running_.extract(each.fd);
      ::close(each.fd);
      return {ended.mapped().task, std::move(ended.mapped().said), how_it_ended(ended.mapped().process)};
    }
  }
}

}  // namespace muster::sim
