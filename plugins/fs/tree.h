#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>

#include "schema/result.h"

/// Looking at a directory tree without following a link and without entering another file system. Every step is an
/// openat() of one name from a descriptor that is held, so a component that somebody swaps for a link is not followed,
/// and paths longer than PATH_MAX work. Thread: any; nothing is shared.
namespace muster::fs {

/// What names of objects that are not ready yet begin with: no listing shows them.
inline constexpr std::string_view kDraftPrefix = ".muster-draft-";

enum class Kind : std::uint8_t { kDirectory, kFile, kSymlink, kSpecial };

/// What lstat tells of one object.
struct Status {
  Kind kind = Kind::kSpecial;
  std::uint32_t mode = 0;  // the twelve permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;
  std::uint64_t size = 0;  // bytes
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t mount = 0;  // 0 where the kernel does not say
  std::timespec mtime{};
  std::optional<std::timespec> birth;  // none where the file system keeps none
};

/// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int number = -1) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd();

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

/// Closes what it reads, and the descriptor that it was made from.
struct CloseDirectory {
  void operator()(DIR* stream) const { closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

/// A directory that was reached; open for lookups, not for reading.
struct Directory {
  Fd fd;
  Status status;
};

/// Names of one kind in a directory, bytewise ascending, each once.
struct Names {
  std::vector<std::string> names;
  bool more = false;          // there are names after the last one
  std::uint32_t special = 0;  // sockets, pipes and devices in the whole directory
};

/// Errors of all functions: kNotFound where the object is gone, is of another kind, or stands behind a link or a mount
/// point; kAccessDenied; else what the errno means.
class Tree {
 public:
  /// `root`   absolute path; its last component must not be a link (kInvalidRequest, as for anything else that is no
  ///          directory)
  static Result<Tree> open(const std::string& root);

  [[nodiscard]] const Directory& root() const { return root_; }
  /// The directory that `names` lead to; it may be a mount point, but lies behind none.
  [[nodiscard]] Result<Directory> walk(const std::vector<std::string>& names) const;
  /// Whether `directory` belongs to the root's file system, and is reached there as the root is. The contents of
  /// others, and of what is mounted a second time, are none of this tree's.
  [[nodiscard]] bool holds(const Directory& directory) const {
    return directory.status.device == root_.status.device && !is_mounted(directory.status);
  }
  /// Whether something stands there because it is mounted there.
  [[nodiscard]] bool is_mounted(const Status& status) const { return status.mount != root_.status.mount; }

 private:
  explicit Tree(Directory root) : root_(std::move(root)) {}
  Directory root_;
};

/// The first `limit` names of `kind` after `after` (empty: from the start). Memory is bounded by `limit`, not by the
/// size of the directory.
Result<Names> list_names(const Directory& directory, Kind kind, const std::string& after, std::size_t limit);

/// `name` empty: of the directory itself.
Result<Status> status_of(const Directory& directory, const std::string& name);

/// Where a link points to, in the link's own bytes.
Result<std::string> link_target(const Directory& directory, const std::string& name);

struct HashedFile {
  Status status;       // as at the opening
  std::string sha256;  // of the first `status.size` bytes, lower-case hex
};
/// Errors also kCancelled, soon after `stop` is requested.
Result<HashedFile> hash_file(const Directory& directory, const std::string& name, const std::stop_token& stop);

}  // namespace muster::fs
