#pragma once

#include <sys/types.h>

#include <string>

#include "schema/result.h"

namespace muster::cli {

inline constexpr mode_t kPrivate = 0600;
inline constexpr mode_t kPublic = 0644;

/// Replaces a file as a whole, by way of `path`.new: readers see the old content or the new one, whatever dies
/// meanwhile. What lies under one of the two names is not followed where it is a link.
/// `mode`    of the file, whatever the umask
/// errors    kInternalFailure, with the path
Result<void> replace_file(const std::string& path, const std::string& content, mode_t mode);

/// Has what was made, renamed and removed in a folder last through a power failure. Where that cannot be had, nothing.
void sync_folder(const std::string& path);

}  // namespace muster::cli
