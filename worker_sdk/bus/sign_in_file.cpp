#include "worker_sdk/bus/sign_in_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

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
  if (!S_ISREG(kind.st_mode) && !S_ISDIR(kind.st_mode)) return wrong("is no regular file");  // reading fails at those
  std::string text(most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > most) return wrong("is larger than " + std::to_string(most >> 10U) + " KiB: no file to sign in with");
  text.resize(size);
  return text;
}

}  // namespace muster
