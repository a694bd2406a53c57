#include "coordinator/cli/replace_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace muster::cli {
namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

Result<void> replace_file(const std::string& path, const std::string& content, mode_t mode) {
  const std::string draft = path + ".new";
  unlink(draft.c_str());
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate);
  bool done = file >= 0 && fchmod(file, mode) == 0 && write_all(file, content) && fsync(file) == 0;
  int why = errno;
  if (file >= 0 && close(file) != 0 && done) {
    done = false;
    why = errno;
  }
  if (done && rename(draft.c_str(), path.c_str()) != 0) {
    done = false;
    why = errno;
  }
  if (!done) {
    if (file >= 0) unlink(draft.c_str());
    return Error{Errc::kInternalFailure, path + ": " + std::strerror(why)};
  }
  sync_folder(std::filesystem::path(path).parent_path());
  return {};
}

void sync_folder(const std::string& path) {
  const int folder = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

}  // namespace muster::cli
