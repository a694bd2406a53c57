#include "worker_sdk/bus/sign_in_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muster {
namespace {

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

}  // namespace

Result<std::string> read_sign_in_file(const std::string& path, std::size_t most) {
  const auto wrong = [&](const std::string& why) { return Error{Errc::kInvalidRequest, path + ": " + why, {}, 0}; };
  const auto unreadable = [&] { return wrong(std::string("cannot be read: ") + std::strerror(errno)); };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat kind {};
  if (file.fd < 0 || ::fstat(file.fd, &kind) != 0) return unreadable();
  if (!S_ISREG(kind.st_mode) && !S_ISDIR(kind.st_mode)) {  // reading fails at those
    return wrong("is no regular file, which it has to be: it is read again at each connection");
  }
  std::string text;
  std::array<char, 8192> chunk{};
  while (text.size() <= most) {
    const auto got = ::read(file.fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return wrong("is larger than " + std::to_string(most >> 10U) + " KiB: no file to sign in with");
}

}  // namespace muster
