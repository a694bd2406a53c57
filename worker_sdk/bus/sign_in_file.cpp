#include "worker_sdk/bus/sign_in_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace muster {
namespace {

constexpr std::size_t kMaxSignInBytes = 64 * 1024;

}  // namespace

Result<std::string> read_sign_in_file(const std::string& path) {
  const auto wrong = [&](const std::string& why) { return Error{Errc::kInvalidRequest, path + ": " + why, {}, 0}; };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxSignInBytes + 1, '\0');
  // A directory opens, and fails here.
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return wrong(errno == 0 ? "cannot be read" : std::string("cannot be read: ") + std::strerror(errno));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxSignInBytes) return wrong("is larger than 64 KiB: no file to sign in with");
  return text;
}

}  // namespace muster
