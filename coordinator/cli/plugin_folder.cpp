#include "coordinator/cli/plugin_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "coordinator/cli/checksums.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "muster-plugin-";

/// What a list of checksums says, none when there is no list.
Result<std::optional<Checksums>> read_checksums(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::optional<Checksums>();
  if (fs::file_size(path, error) > kMaxChecksumBytes && !error) {
    return Error{Errc::kLimit, std::string(kChecksums) + " is larger than 1 MiB"};
  }
  const auto text = read_file(path);
  if (!text) return Error{text.error().code, std::string(kChecksums) + " " + text.error().message};
  auto sums = parse_checksums(*text);
  if (!sums) return sums.error();
  return std::optional(std::move(*sums));
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
  const auto time = [](const timespec& t) { return std::pair(t.tv_sec, t.tv_nsec); };
  return status.st_dev == opened_.st_dev && status.st_ino == opened_.st_ino && status.st_size == opened_.st_size &&
         time(status.st_mtim) == time(opened_.st_mtim) && time(status.st_ctim) == time(opened_.st_ctim);
}

bool OpenFile::touched() const {
  struct stat now {};
  if (fstat(descriptor_, &now) != 0) return true;
  now.st_ctim = opened_.st_ctim;  // which changes, too, when another file takes its name
  return !is(now);
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

const PluginFile& PluginFolder::look(const std::string& name, const struct stat& status) {
  PluginFile& seen = seen_[name];
  if (seen.file && seen.file->is(status)) return seen;
  seen = {name, fs::path(path_) / name, {}, {}, false, nullptr};
  const int descriptor = open(seen.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) {
    seen.refusal = std::string("it cannot be read: ") + std::strerror(errno);
    return seen;
  }
  seen.file = std::make_shared<OpenFile>(descriptor);
  if (auto sum = sha256_of(descriptor, kMaxPluginBytes)) {
    seen.version = std::move(*sum);
  } else {
    seen.refusal = "it " + sum.error().message;
  }
  return seen;
}

Result<PluginFolder::Listing> PluginFolder::read() {
  std::error_code error;
  fs::directory_iterator entries(path_, error);
  if (error) return Error{Errc::kNotFound, path_ + " cannot be read: " + error.message()};
  std::map<std::string, struct stat> there;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().filename();
    struct stat status {};
    if (!is_plugin_name(name) || stat(entries->path().c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && access(entries->path().c_str(), X_OK) == 0) there.emplace(std::move(name), status);
  }
  if (error) return Error{Errc::kNotFound, path_ + " cannot be read: " + error.message()};
  if (there.size() > kMaxPlugins) {
    return Error{Errc::kLimit, path_ + " has more than " + std::to_string(kMaxPlugins) + " executables"};
  }
  std::erase_if(seen_, [&](const auto& one) { return there.count(one.first) == 0; });

  Listing listing;
  const auto sums = read_checksums(fs::path(path_) / kChecksums);
  if (!sums) {
    listing.fault = sums.error().message;
  } else if (!*sums && verify_ == Verify::kRequired) {
    listing.fault = "checksums are required, and there is no " + std::string(kChecksums) +
                    ": make it with `sha256sum muster-plugin-* > " + std::string(kChecksums) + "`";
  }
  for (const auto& [name, status] : there) {
    PluginFile file = look(name, status);
    if (file.refusal.empty() && !listing.fault.empty()) file.refusal = listing.fault;
    if (file.refusal.empty() && *sums) verify_file(file, **sums);
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace muster::cli
