// The log of a process whose standard error nobody reads.

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "worker_sdk/bus/stderr_log.h"

using namespace muster;

namespace {

/// Standard error is a pipe as long as this lives.
class ErrorPipe {
 public:
  ErrorPipe() {
    REQUIRE(pipe2(ends_.data(), O_CLOEXEC) == 0);
    REQUIRE(fcntl(ends_[0], F_SETFL, O_NONBLOCK) == 0);
    REQUIRE(dup2(ends_[1], STDERR_FILENO) == STDERR_FILENO);
  }
  ~ErrorPipe() {
    dup2(before_, STDERR_FILENO);
    for (const int one : {before_, ends_[0], ends_[1]}) close(one);
  }
  ErrorPipe(const ErrorPipe&) = delete;
  ErrorPipe& operator=(const ErrorPipe&) = delete;

  [[nodiscard]] std::string read_all() const {
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t count = 0; (count = read(ends_[0], piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int before_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  std::array<int, 2> ends_{};
};

}  // namespace

TEST_CASE("a log that nobody reads holds nobody up, and says what it has left out") {
  const ErrorPipe error;
  const auto log = stderr_log("test", spdlog::level::info, true);
  constexpr int kEntries = 2000;
  for (int i = 0; i < kEntries; ++i) log->info("{} {}", i, std::string(100, 'x'));
  const auto first = error.read_all();
  CHECK(first.size() > 32'000);
  CHECK(first.find("0 xxx") != std::string::npos);
  CHECK(first.find("nobody read") == std::string::npos);
  log->info("goes on");
  const auto then = error.read_all();
  CHECK(then.find("nobody read this log: ") != std::string::npos);
  CHECK(then.find("goes on") > then.find("entries are left out"));
}
