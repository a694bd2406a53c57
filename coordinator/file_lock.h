#pragma once

#include <string>
#include <utility>

#include "schema/result.h"

namespace muster {

/// Ownership of something on disk by one process: an exclusive lock on a file that holds the owner's pid, where the
/// disk has room for it. The kernel lets go of it when the object or the process ends; the file stays. Programs that
/// the process starts don't inherit it.
class FileLock {
 public:
  /// errors   kConflict: held by another owner (message names its pid); kStoreUnavailable: the file cannot be made
  static Result<FileLock> acquire(const std::string& path);

  FileLock() = default;  // holds nothing
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace muster
