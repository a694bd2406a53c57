#include "coordinator/cli/plugin_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "muster-plugin-";

// Whatever has the name by now: it is neither waited for nor does it become our terminal.
constexpr int kOpen = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

Error bad_list(Errc code, const std::string& what) {
  return {code, std::string(kChecksums) + " " + what, {}, 0};
}

/// Why a file or folder is not only root's and that of the user that runs this, with what to do; empty: it is.
std::string foreign_owner(const struct stat& status, const std::string& path) {
  if (status.st_uid == 0 || status.st_uid == geteuid()) return {};
  return "belongs to user " + std::to_string(status.st_uid) + ", neither root nor the one that runs this: `chown " +
         (S_ISLNK(status.st_mode) ? "-h " : "") + "root " + path + "`";
}

/// Why others can change it, or else its owner.
std::string exposure(const struct stat& status, const std::string& path) {
  if (auto owner = foreign_owner(status, path); !owner.empty()) return owner;
  const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;  // each can replace its own only
  if ((status.st_mode & S_IWOTH) == 0 || sticky) return {};
  return "can be written by everybody: `chmod o-w " + path + "`";
}

/// The same of a plugin that was opened, and of the link that leads to it.
std::string exposure(const PluginFile& file) {
  struct stat link {};
  const bool is_link = lstat(file.path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
  std::string why = is_link ? foreign_owner(link, file.path) : "";
  if (why.empty()) why = exposure(file.file->status(), file.path);
  return why.empty() ? why : "it " + why;
}

/// All that an open file holds, or a byte more than `limit` of it.
Result<std::string> text_of(int descriptor, std::size_t limit) {
  std::string text(limit + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return bad_list(Errc::kAccessDenied, std::string("cannot be read: ") + std::strerror(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

/// What a list of checksums says, none when there is no list. Whatever else is in its place is an error: only who has
/// taken the list away has files started that nobody verified.
Result<std::optional<Checksums>> read_checksums(const fs::path& path) {
  const int descriptor = open(path.c_str(), kOpen | O_NOFOLLOW);
  if (descriptor < 0 && errno == ENOENT) return std::optional<Checksums>();
  if (descriptor < 0 && errno == ELOOP) {
    return bad_list(Errc::kAccessDenied, "is a link, and must be a regular file");
  }
  if (descriptor < 0) return bad_list(Errc::kAccessDenied, std::string("cannot be opened: ") + std::strerror(errno));
  const OpenFile file(descriptor);
  if (!S_ISREG(file.status().st_mode)) return bad_list(Errc::kAccessDenied, "is no regular file");
  if (const auto why = exposure(file.status(), path); !why.empty()) return bad_list(Errc::kAccessDenied, why);
  const auto text = text_of(descriptor, kMaxChecksumBytes);
  if (!text) return text.error();
  if (text->size() > kMaxChecksumBytes) return bad_list(Errc::kLimit, "is larger than 1 MiB");
  auto sums = parse_checksums(*text);
  if (!sums) return sums.error();
  return std::optional(std::move(*sums));
}

/// Whether nothing was done to a file between the two.
bool same_state(const struct stat& a, const struct stat& b) {
  const auto time = [](const timespec& t) { return std::pair(t.tv_sec, t.tv_nsec); };
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && time(a.st_mtim) == time(b.st_mtim) &&
         time(a.st_ctim) == time(b.st_ctim);
}

void verify_file(PluginFile& file, const Checksums& sums) {
  const auto listed = sums.find(file.name);
  if (listed == sums.end()) {
    file.refusal = "it is not listed in " + std::string(kChecksums);
  } else if (listed->second != file.version) {
    file.refusal = "its checksum is not the one in " + std::string(kChecksums);
  }
  file.verified = file.refusal.empty();
}

}  // namespace

OpenFile::OpenFile(int descriptor) : descriptor_(descriptor) {
  fstat(descriptor_, &opened_);
}

OpenFile::~OpenFile() {
  close(descriptor_);
}

bool OpenFile::is(const struct stat& status) const {
  return same_state(status, opened_);
}

bool OpenFile::touched() const {
  struct stat now {};
  if (fstat(descriptor_, &now) != 0) return true;
  now.st_ctim = opened_.st_ctim;  // which changes, too, when another file takes its name
  return !is(now);
}

bool OpenFile::lies_at(const std::string& path) const {
  struct stat there {};
  return stat(path.c_str(), &there) == 0 && there.st_dev == opened_.st_dev && there.st_ino == opened_.st_ino;
}

Recheck::Recheck(const PluginFile& file)
    : file_(file.file), version_(file.version), sum_(file_->descriptor(), kMaxPluginBytes) {
  fstat(file_->descriptor(), &begun_);
}

std::optional<bool> Recheck::unchanged() const {
  const auto& sum = sum_.result();
  if (!sum) return std::nullopt;
  struct stat now {};
  // Written behind where it is read, with its time set back, it would have the sum that it had before.
  const bool left_alone = fstat(file_->descriptor(), &now) == 0 && same_state(now, begun_);
  return left_alone && *sum && **sum == version_ && !file_->touched();
}

bool is_plugin_name(std::string_view name) {
  constexpr std::array<std::string_view, 7> kEndings{".sha256", "~", ".new", ".tmp", ".swp", ".part", "#"};
  return !name.starts_with('.') && name != kChecksums &&
         std::none_of(kEndings.begin(), kEndings.end(), [&](std::string_view end) { return name.ends_with(end); });
}

std::string plugin_name(std::string_view name) {
  if (name.starts_with(kPrefix) && name.size() > kPrefix.size()) name.remove_prefix(kPrefix.size());
  return std::string(name);
}

PluginFolder::PluginFolder(std::string path, Verify verify)
    : path_(fs::absolute(path).lexically_normal()), verify_(verify) {}

const PluginFile& PluginFolder::look_at(const std::string& name, const Entry& entry) {
  auto& [seen, sum] = seen_[name];
  if (entry.trouble.empty() && seen.file && seen.file->is(entry.status)) return seen;
  sum.reset();
  seen = {name, fs::path(path_) / name, {}, entry.trouble, false, nullptr};
  if (!entry.trouble.empty()) return seen;
  const int descriptor = open(seen.path.c_str(), kOpen);
  if (descriptor < 0) {
    seen.refusal = std::string("it cannot be read: ") + std::strerror(errno);
    return seen;
  }
  auto file = std::make_shared<OpenFile>(descriptor);
  if (!S_ISREG(file->status().st_mode)) {
    seen.refusal = "it is no regular file any more";
    return seen;
  }
  seen.file = std::move(file);
  seen.pending = true;
  sum.emplace(descriptor, kMaxPluginBytes);
  return seen;
}

const PluginFolder::Seen* PluginFolder::next_to_read() const {
  const Seen* next = nullptr;
  for (const auto& [name, seen] : seen_) {
    if (seen.sum && (next == nullptr || seen.sum->left() < next->sum->left())) next = &seen;
  }
  return next;
}

bool PluginFolder::reads(const std::string& name) const {
  const auto seen = seen_.find(name);
  return seen != seen_.end() && seen->second.sum;
}

bool PluginFolder::read_on(std::uint64_t bytes) {
  bool known = false;
  while (bytes > 0) {
    const Seen* next = next_to_read();
    if (next == nullptr) break;
    auto& [file, sum] = seen_.at(next->file.name);
    bytes -= sum->read_on(bytes);
    if (!sum->result()) continue;
    const Result<std::string> result = *sum->result();
    sum.reset();
    struct stat now {};
    if (fstat(file.file->descriptor(), &now) != 0 || !file.file->is(now)) {
      file.file.reset();  // the next look() opens it anew
      continue;
    }
    file.pending = false;
    known = true;
    if (result) {
      file.version = *result;
    } else {
      file.refusal = "it " + result.error().message;
    }
  }
  return known;
}

Result<std::map<std::string, PluginFolder::Entry>> PluginFolder::entries() const {
  std::error_code error;
  fs::directory_iterator names(path_, error);
  if (error) return Error{Errc::kNotFound, path_ + " cannot be read: " + error.message()};
  std::map<std::string, Entry> found;
  for (; names != fs::directory_iterator(); names.increment(error)) {
    const std::string name = names->path().filename();
    if (!is_plugin_name(name)) continue;
    Entry entry;
    const bool known = stat(names->path().c_str(), &entry.status) == 0;
    if (known && !S_ISREG(entry.status.st_mode)) continue;
    if (!known || access(names->path().c_str(), X_OK) != 0) {
      if (errno == ENOENT || (known && errno == EACCES)) continue;  // gone, a link to nothing, not executable
      entry.trouble = std::string("it cannot be looked at: ") + std::strerror(errno);
    }
    found.emplace(name, std::move(entry));
  }
  if (error) return Error{Errc::kNotFound, path_ + " cannot be read: " + error.message()};
  if (found.size() > kMaxPlugins) {
    return Error{Errc::kLimit, path_ + " has more than " + std::to_string(kMaxPlugins) + " executables"};
  }
  return found;
}

Result<PluginFolder::Listing> PluginFolder::look() {
  const auto found = entries();
  if (!found) return found.error();
  std::erase_if(seen_, [&](const auto& one) { return found->count(one.first) == 0; });

  struct stat folder {};
  if (stat(path_.c_str(), &folder) != 0) {
    return Error{Errc::kNotFound, path_ + " cannot be read: " + std::strerror(errno)};
  }
  Listing listing;
  const auto sums = read_checksums(fs::path(path_) / kChecksums);
  if (auto why = exposure(folder, path_); !why.empty()) {
    listing.fault = "the folder " + why;
  } else if (!sums) {
    listing.fault = sums.error().message;
  } else if (!*sums && verify_ == Verify::kRequired) {
    listing.fault = "checksums are required, and there is no " + std::string(kChecksums) +
                    ": make it with `sha256sum muster-plugin-* > " + std::string(kChecksums) + "`";
  }
  for (const auto& [name, entry] : *found) {
    PluginFile file = look_at(name, entry);
    if (file.pending) {
      listing.files.push_back(std::move(file));
      continue;
    }
    if (file.refusal.empty() && !listing.fault.empty()) file.refusal = listing.fault;
    if (file.refusal.empty()) file.refusal = exposure(file);
    if (file.refusal.empty() && *sums) verify_file(file, **sums);
    listing.files.push_back(std::move(file));
  }
  return listing;
}

Result<PluginFolder::Listing> PluginFolder::read() {
  if (auto first = look(); !first) return first;
  read_on(std::numeric_limits<std::uint64_t>::max());
  auto listing = look();
  if (!listing) return listing;
  for (PluginFile& file : listing->files) {
    if (std::exchange(file.pending, false)) file.refusal = "it is being changed";
  }
  return listing;
}

}  // namespace muster::cli
