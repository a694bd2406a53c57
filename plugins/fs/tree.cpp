#include "tree.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "muster/properties.h"

namespace muster::fs {
namespace {

constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr std::size_t kChunk = 1 << 20;

/// A component that is no directory (any more), or a link where none may be, means that the path is gone.
Error error_of(int number, const std::string& name) {
  if (number == ENOENT || number == ENOTDIR || number == ELOOP) return not_found(name + ": not found");
  return from_errno(number, name);
}

Kind kind_of(unsigned mode) {
  if (S_ISDIR(mode)) return Kind::kDirectory;
  if (S_ISREG(mode)) return Kind::kFile;
  if (S_ISLNK(mode)) return Kind::kSymlink;
  return Kind::kSpecial;
}

std::timespec to_timespec(const statx_timestamp& time) {
  return {static_cast<std::time_t>(time.tv_sec), static_cast<long>(time.tv_nsec)};
}

/// `name` empty: the object of `fd` itself. Automounts stay untouched.
Result<Status> stat_at(int fd, const std::string& name) {
  struct statx raw = {};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name.empty() ? AT_EMPTY_PATH : 0);
  if (statx(fd, name.c_str(), flags, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID, &raw) != 0)
    return error_of(errno, name);
  Status status;
  status.kind = kind_of(raw.stx_mode);
  status.mode = raw.stx_mode & 07777U;
  status.uid = raw.stx_uid;
  status.gid = raw.stx_gid;
  status.links = raw.stx_nlink;
  status.size = raw.stx_size;
  status.device = makedev(raw.stx_dev_major, raw.stx_dev_minor);
  status.inode = raw.stx_ino;
  if ((raw.stx_mask & STATX_MNT_ID) != 0) status.mount = raw.stx_mnt_id;
  status.mtime = to_timespec(raw.stx_mtime);
  if ((raw.stx_mask & STATX_BTIME) != 0) status.birth = to_timespec(raw.stx_btime);
  return status;
}

/// The kind that the directory itself remembers, else what lstat says.
Result<Kind> kind_of_entry(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return kind_of(DTTOIF(entry.d_type));
  const auto status = stat_at(directory, entry.d_name);
  if (!status) return status.error();
  return status->kind;
}

std::string to_hex(const unsigned char* bytes, std::size_t size) {
  std::string hex(size * 2 + 1, '\0');
  sodium_bin2hex(hex.data(), hex.size(), bytes, size);
  hex.pop_back();
  return hex;
}

}  // namespace

Fd::~Fd() {
  if (number_ >= 0) close(number_);
}

Result<Tree> Tree::open(const std::string& root) {
  Fd fd(::open(root.c_str(), kLook));
  if (!fd) return error_of(errno, "config.root: " + root);
  auto status = stat_at(fd.get(), "");
  if (!status) return status.error();
  if (status->kind != Kind::kDirectory) return invalid_request("config.root: " + root + " is not a directory");
  return Tree(Directory{std::move(fd), *status});
}

Result<Directory> Tree::walk(const std::vector<std::string>& names) const {
  Directory here{Fd(fcntl(root_.fd.get(), F_DUPFD_CLOEXEC, 0)), root_.status};
  if (!here.fd) return from_errno(errno, "root");
  for (const auto& name : names) {
    if (!holds(here)) return not_found(name + ": on another file system than the root");
    Fd next(openat(here.fd.get(), name.c_str(), kLook));
    if (!next) return error_of(errno, name);
    auto status = stat_at(next.get(), "");
    if (!status) return status.error();
    if (status->kind != Kind::kDirectory) return not_found(name + ": not a directory");
    here = Directory{std::move(next), *status};
  }
  return here;
}

Result<Names> list_names(const Directory& directory, Kind kind, const std::string& after, std::size_t limit) {
  Fd fd(openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return error_of(errno, "directory");
  const DirectoryStream stream(fdopendir(fd.get()));
  if (!stream) return from_errno(errno, "directory");
  const int number = fd.release();  // the stream closes it

  Names found;
  std::set<std::string, std::less<>> first;  // the smallest `limit` names seen so far, and one more
  const dirent* entry = nullptr;
  while (errno = 0, (entry = readdir(stream.get())) != nullptr) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(kDraftPrefix)) continue;
    const auto entry_kind = kind_of_entry(number, *entry);
    if (!entry_kind && entry_kind.error().code == Errc::kNotFound) continue;  // gone since
    if (!entry_kind) return entry_kind.error();
    if (*entry_kind == Kind::kSpecial) ++found.special;
    if (*entry_kind != kind || name <= after) continue;
    if (first.size() > limit && name >= *first.rbegin()) continue;
    first.emplace(name);
    if (first.size() > limit + 1) first.erase(std::prev(first.end()));
  }
  if (errno != 0) return error_of(errno, "directory");
  found.more = first.size() > limit;
  if (found.more) first.erase(std::prev(first.end()));
  found.names.assign(first.begin(), first.end());
  return found;
}

Result<Status> status_of(const Directory& directory, const std::string& name) {
  return stat_at(directory.fd.get(), name);
}

Result<std::string> link_target(const Directory& directory, const std::string& name) {
  std::string target(PATH_MAX, '\0');  // no link is longer
  const auto size = readlinkat(directory.fd.get(), name.c_str(), target.data(), target.size());
  // EINVAL: no link any more
  if (size < 0) return error_of(errno == EINVAL ? ENOENT : errno, name);
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Result<HashedFile> hash_file(const Directory& directory, const std::string& name, const std::stop_token& stop) {
  // O_NONBLOCK: a pipe that took the file's place must not hang the reader.
  const Fd fd(openat(directory.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return error_of(errno, name);
  auto status = stat_at(fd.get(), "");
  if (!status) return status.error();
  if (status->kind != Kind::kFile) return not_found(name + ": not a file");

  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  std::vector<unsigned char> chunk(std::min<std::uint64_t>(kChunk, status->size));
  // No further than the size that is reported beside the hash: a log that grows all the time has an end, too.
  for (std::uint64_t left = status->size; left > 0;) {
    if (stop.stop_requested()) return failure(Errc::kCancelled, name + ": cancelled while hashing");
    const auto size = read(fd.get(), chunk.data(), std::min<std::uint64_t>(chunk.size(), left));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return error_of(errno, name);
    if (size == 0) break;
    crypto_hash_sha256_update(&state, chunk.data(), static_cast<std::size_t>(size));
    left -= static_cast<std::uint64_t>(size);
  }
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_final(&state, digest);
  return HashedFile{*status, to_hex(digest, sizeof digest)};
}

}  // namespace muster::fs
