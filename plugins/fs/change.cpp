#include "change.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "muster/properties.h"

namespace muster::fs {
namespace {

constexpr const char* kMark = "user.muster.key";
constexpr const char* kLinkInDraft = "link";
constexpr std::time_t kAbandonedAfter = 600;  // seconds; no draft is worked on for so long
constexpr std::time_t kLockedWithin = 5;      // seconds; one that nobody has locked then is nobody's
constexpr std::chrono::hours kSweepInterval{1};
constexpr std::size_t kSweptDirectories = 10'000;

// -1: stays as it is.
uid_t uid_of(const Attributes& attributes) {
  return attributes.uid.value_or(static_cast<uid_t>(-1));
}
gid_t gid_of(const Attributes& attributes) {
  return attributes.gid.value_or(static_cast<gid_t>(-1));
}

/// As fsync(), of a directory. Some file systems have none for directories, and make them durable by other means.
bool sync_directory(const Fd& fd) {
  return fsync(fd.get()) == 0 || errno == EINVAL;
}

/// An object that has no place yet. Its hidden name, if it has one, is gone at the end.
class Draft {
 public:
  explicit Draft(const Directory& parent) : parent_(parent) {
    std::array<unsigned char, 8> bytes{};
    randombytes_buf(bytes.data(), bytes.size());
    std::array<char, 17> hex{};
    sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
    name_ = std::string(kDraftPrefix) + hex.data();
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (linked_) unlinkat(fd_.get(), kLinkInDraft, 0);
    if (named_) unlinkat(parent_.fd.get(), name_.c_str(), directory_ ? AT_REMOVEDIR : 0);
  }

  Result<void> make_directory() {
    if (mkdirat(parent_.fd.get(), name_.c_str(), 0700) != 0) return from_errno(errno, "mkdir");
    named_ = directory_ = true;
    fd_ = Fd(openat(parent_.fd.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd_) return from_errno(errno, "open");
    hold();
    return {};
  }

  /// Without a name where the file system can.
  Result<void> make_file() {
    fd_ = Fd(openat(parent_.fd.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (fd_) {
      hold();
      return {};
    }
    if (errno != EOPNOTSUPP && errno != EISDIR) return from_errno(errno, "create");
    fd_ = Fd(openat(parent_.fd.get(), name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd_) return from_errno(errno, "create");
    named_ = true;
    hold();
    return {};
  }

  /// In a directory, as nobody can hold a link.
  Result<void> make_link(const std::string& target, const Attributes& attributes) {
    if (auto made = make_directory(); !made) return made;
    if (symlinkat(target.c_str(), fd_.get(), kLinkInDraft) != 0) return from_errno(errno, "symlink");
    linked_ = true;
    if (!attributes.uid && !attributes.gid) return {};
    if (fchownat(fd_.get(), kLinkInDraft, uid_of(attributes), gid_of(attributes), AT_SYMLINK_NOFOLLOW) != 0)
      return from_errno(errno, "chown");
    return {};
  }

  Result<void> write(std::string_view content) {
    while (!content.empty()) {
      const auto size = ::write(fd_.get(), content.data(), content.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return from_errno(errno, "write");
      content.remove_prefix(static_cast<std::size_t>(size));
    }
    return {};
  }

  /// The owner before the mode, as a new owner clears bits of it; the mark before both, while the object is ours.
  Result<void> dress(const Attributes& attributes, const std::string& mark) {
    if (!mark.empty() && fsetxattr(fd_.get(), kMark, mark.data(), mark.size(), 0) != 0) {
      if (errno != EOPNOTSUPP && errno != EPERM) return from_errno(errno, "setxattr");
    }
    if ((attributes.uid || attributes.gid) && fchown(fd_.get(), uid_of(attributes), gid_of(attributes)) != 0)
      return from_errno(errno, "chown");
    if (attributes.mode && fchmod(fd_.get(), *attributes.mode) != 0) return from_errno(errno, "chmod");
    if (directory_ ? !sync_directory(fd_) : fsync(fd_.get()) != 0) return from_errno(errno, "fsync");
    return {};
  }

  /// Takes the name, if nobody has it.
  Result<void> appear(const std::string& name) {
    if (!named_) return link(name);
    const auto [in, as] = place();
    if (renameat2(in, as, parent_.fd.get(), name.c_str(), RENAME_NOREPLACE) == 0) {
      (linked_ ? linked_ : named_) = false;
      return {};
    }
    if (errno != EINVAL && errno != ENOSYS) return from_errno(errno, name);
    // No such rename on this file system.
    if (directory_ && !linked_) {
      return unsupported(name + ": this file system cannot put a directory in place without replacing");
    }
    if (linkat(in, as, parent_.fd.get(), name.c_str(), 0) != 0) return from_errno(errno, name);
    return {};
  }

  /// Takes the place of what has the name, as long as that is what was seen.
  Result<void> replace(const std::string& name, const Status& expected) {
    if (!named_) {
      if (auto linked = link(name_); !linked) return linked;
      named_ = true;
    }
    const auto present = status_of(parent_, name);
    if (!present) return present.error();
    if (present->inode != expected.inode || present->device != expected.device) {
      return conflict(name + ": was replaced by another one meanwhile");
    }
    const auto [in, as] = place();
    if (renameat(in, as, parent_.fd.get(), name.c_str()) != 0) return from_errno(errno, name);
    (linked_ ? linked_ : named_) = false;
    return {};
  }

 private:
  /// So that others see that somebody works on it; where a file system has no locks its age must do.
  void hold() const { static_cast<void>(flock(fd_.get(), LOCK_EX | LOCK_NB)); }

  /// The directory and the name that the object has in it.
  [[nodiscard]] std::pair<int, const char*> place() const {
    return linked_ ? std::pair(fd_.get(), kLinkInDraft) : std::pair(parent_.fd.get(), name_.c_str());
  }

  Result<void> link(const std::string& name) {
    const auto path = "/proc/self/fd/" + std::to_string(fd_.get());
    if (linkat(AT_FDCWD, path.c_str(), parent_.fd.get(), name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return from_errno(errno, name);
    }
    return {};
  }

  const Directory& parent_;
  std::string name_;
  Fd fd_;
  bool named_ = false;
  bool directory_ = false;
  bool linked_ = false;
};

/// Makes durable what changed in a directory. One that may not be read cannot be asked for it. The change is made by
/// then: no failure may say that it was not.
Result<void> sync(const Directory& directory) {
  const Fd fd(openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || sync_directory(fd)) return {};
  return not_stabilized(from_errno(errno, "fsync").message + ", after the change was made");
}

/// Of an open object, whatever it was opened for.
std::string path_of(const Fd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

Fd look_at(const Directory& parent, const std::string& name) {
  return Fd(openat(parent.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

/// Whether nobody works on a draft any more.
bool is_abandoned(const Directory& directory, const std::string& name, const Status& status) {
  const auto age = std::time(nullptr) - status.mtime.tv_sec;
  if (age >= kAbandonedAfter) return true;
  if (age < kLockedWithin) return false;
  const Fd fd(openat(directory.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return fd && flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_draft(const Directory& directory, const std::string& name, Kind kind) {
  if (kind == Kind::kDirectory) {
    const Fd fd(openat(directory.fd.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd) unlinkat(fd.get(), kLinkInDraft, 0);
  }
  unlinkat(directory.fd.get(), name.c_str(), kind == Kind::kDirectory ? AT_REMOVEDIR : 0);
}

/// Removes abandoned drafts from a directory. Whether others are all that is in it then.
bool sweep(const Directory& directory) {
  Fd fd(openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return false;
  const DirectoryStream stream(fdopendir(fd.get()));
  if (!stream) return false;
  static_cast<void>(fd.release());  // the stream closes it
  std::vector<std::string> drafts;
  bool drafts_only = true;
  while (const auto* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kDraftPrefix)) {
      drafts.emplace_back(name);
    } else if (name != "." && name != "..") {
      drafts_only = false;
    }
  }
  for (const auto& name : drafts) {
    const auto status = status_of(directory, name);
    if (status && is_abandoned(directory, name, *status)) remove_draft(directory, name, status->kind);
  }
  return drafts_only;
}

}  // namespace

Result<void> create_directory(const Directory& parent, const std::string& name, const Attributes& attributes,
                              const std::string& mark) {
  Draft draft(parent);
  if (auto made = draft.make_directory(); !made) return made;
  if (auto dressed = draft.dress(attributes, mark); !dressed) return dressed;
  if (auto there = draft.appear(name); !there) return there;
  return sync(parent);
}

Result<void> create_file(const Directory& parent, const std::string& name, const std::string& content,
                         const Attributes& attributes, const std::string& mark) {
  Draft draft(parent);
  if (auto made = draft.make_file(); !made) return made;
  if (auto written = draft.write(content); !written) return written;
  if (auto dressed = draft.dress(attributes, mark); !dressed) return dressed;
  if (auto there = draft.appear(name); !there) return there;
  return sync(parent);
}

Result<void> create_link(const Directory& parent, const std::string& name, const std::string& target,
                         const Attributes& attributes) {
  Draft draft(parent);
  if (auto made = draft.make_link(target, attributes); !made) return made;
  if (auto there = draft.appear(name); !there) return there;
  return sync(parent);
}

Result<void> replace_file(const Directory& parent, const std::string& name, const Status& expected,
                          const std::string& content, const Attributes& attributes, const std::string& mark) {
  Draft draft(parent);
  if (auto made = draft.make_file(); !made) return made;
  if (auto written = draft.write(content); !written) return written;
  if (auto dressed = draft.dress(attributes, mark); !dressed) return dressed;
  if (auto there = draft.replace(name, expected); !there) return there;
  return sync(parent);
}

Result<void> replace_link(const Directory& parent, const std::string& name, const Status& expected,
                          const std::string& target, const Attributes& attributes) {
  Draft draft(parent);
  if (auto made = draft.make_link(target, attributes); !made) return made;
  if (auto there = draft.replace(name, expected); !there) return there;
  return sync(parent);
}

Result<void> set_attributes(const Directory& parent, const std::string& name, const Status& expected,
                            const Attributes& attributes) {
  const Directory object{look_at(parent, name), {}};  // what happens to the name meanwhile does not matter
  if (!object.fd) return from_errno(errno, name);
  const auto status = status_of(object, "");
  if (!status) return status.error();
  if (status->inode != expected.inode || status->device != expected.device) {
    return conflict(name + ": was replaced by another one meanwhile");
  }
  const bool owner =
      (attributes.uid && *attributes.uid != status->uid) || (attributes.gid && *attributes.gid != status->gid);
  if (owner && fchownat(object.fd.get(), "", uid_of(attributes), gid_of(attributes), AT_EMPTY_PATH) != 0)
    return from_errno(errno, name + ": chown");
  // A new owner clears bits of the mode: it is set again, whatever it was.
  const auto mode = attributes.mode.value_or(status->mode);
  if (status->kind == Kind::kSymlink || (!owner && mode == status->mode)) return {};
  if (chmod(path_of(object.fd).c_str(), mode) == 0) return {};
  auto error = from_errno(errno, name + ": chmod");
  if (owner) return not_stabilized(error.message + ", after its owner was changed");
  return error;
}

Result<void> remove(const Directory& parent, const std::string& name, Kind kind) {
  const int flags = kind == Kind::kDirectory ? AT_REMOVEDIR : 0;
  bool gone = unlinkat(parent.fd.get(), name.c_str(), flags) == 0;
  if (!gone && kind == Kind::kDirectory && (errno == ENOTEMPTY || errno == EEXIST)) {
    const Directory directory{look_at(parent, name), {}};
    const bool drafts_only = directory.fd && sweep(directory);
    gone = unlinkat(parent.fd.get(), name.c_str(), flags) == 0;
    if (!gone && (errno == ENOTEMPTY || errno == EEXIST)) {
      if (drafts_only) return unavailable(name + ": somebody is making something in it");
      return conflict(name + ": the directory is not empty, and what is in it is not deleted along with it");
    }
  }
  if (!gone) return from_errno(errno, name);
  return sync(parent);
}

Result<std::optional<std::string>> mark_of(const Directory& parent, const std::string& name) {
  const auto fd = look_at(parent, name);
  if (!fd) return from_errno(errno, name);
  std::array<char, 1024> mark{};
  const auto size = getxattr(path_of(fd).c_str(), kMark, mark.data(), mark.size());
  if (size >= 0) return std::optional(std::string(mark.data(), static_cast<std::size_t>(size)));
  if (errno == ENODATA) return std::optional<std::string>();
  return from_errno(errno, name);
}

bool has_content(const Directory& parent, const std::string& name, const std::string& content) {
  const Fd fd(openat(parent.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return false;
  std::string found(content.size() + 1, '\0');  // one more, to see whether there is more
  std::size_t size = 0;
  while (size < found.size()) {
    const auto more = read(fd.get(), found.data() + size, found.size() - size);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return false;
    if (more == 0) break;
    size += static_cast<std::size_t>(more);
  }
  found.resize(size);
  return found == content;
}

void Sweeper::visit(const Directory& directory) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (visited_.size() >= kSweptDirectories) visited_.clear();
    const auto [last, first] = visited_.try_emplace({directory.status.device, directory.status.inode}, now);
    if (!first && now - last->second < kSweepInterval) return;
    last->second = now;
  }
  sweep(directory);
}

}  // namespace muster::fs
