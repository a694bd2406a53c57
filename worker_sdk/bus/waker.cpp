#include "worker_sdk/bus/waker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace muster {

Waker::Waker() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Waker::~Waker() {
  ::close(fd_);
}

void Waker::wake() noexcept {
  const int saved = errno;
  const std::uint64_t one = 1;
  // The only failure is a counter at its maximum: the loop is woken already.
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
  errno = saved;
}

void Waker::clear() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd_, &count, sizeof count);
}

}  // namespace muster
