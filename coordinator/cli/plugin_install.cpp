#include "coordinator/cli/plugin_install.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "coordinator/cli/checksums.h"
#include "coordinator/cli/plugin_folder.h"
#include "coordinator/file_lock.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrevious = ".previous";
constexpr std::string_view kDisabled = ".disabled";

fs::path hidden(const fs::path& folder, std::string_view name, std::string_view ending) {
  return folder / ("." + std::string(name) + std::string(ending));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

Error cannot(const std::string& what, const fs::path& path, const std::string& why) {
  return {Errc::kInternalFailure, path.string() + " cannot be " + what + ": " + why};
}

/// What was renamed or made in a folder is there after a power failure, too.
void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

Result<void> move_file(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return cannot("renamed to " + to.string(), from, std::strerror(errno));
  return {};
}

Result<std::string> sum_of(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return cannot("read", path, std::strerror(errno));
  const OpenFile file(descriptor);
  auto sum = sha256_of(descriptor, kMaxPluginBytes);
  if (!sum) return Error{Errc::kInvalidRequest, path.string() + " " + sum.error().message};
  return sum;
}

/// Empty where there is none, or it cannot be read.
std::string known_sum(const fs::path& path) {
  auto sum = sum_of(path);
  return sum ? std::move(*sum) : std::string();
}

Result<FileLock> lock_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{Errc::kNotFound, folder.string() + " is no folder: make it, `mkdir -p " + folder.string() + "`"};
  }
  auto held = FileLock::acquire(folder / ".lock");
  if (held) return held;
  if (held.error().code != Errc::kConflict) return cannot("locked", folder, held.error().message);
  return Error{Errc::kConflict, "another `muster plugin` changes " + folder.string() + ": " + held.error().message};
}

/// The file that a name means, where `place` of one of its spellings is there.
template <typename Place>
std::optional<std::string> find_named(const std::string& name, Place place) {
  if (name.empty() || name.find('/') != std::string::npos || !is_plugin_name(name)) return std::nullopt;
  for (const std::string& file : {name, "muster-plugin-" + name}) {
    if (is_there(place(file))) return file;
  }
  return std::nullopt;
}

Error no_plugin(const fs::path& folder, const std::string& name) {
  return {Errc::kNotFound,
          folder.string() + " has no plugin " + name + ": `muster plugin list --folder " + folder.string() + "`"};
}

/// Has a folder's list say `sum` of `file`, nothing when it is empty. Where there is no list, `makes` says whether one
/// is begun.
Result<void> list_sum(const fs::path& folder, const std::string& file, const std::string& sum, bool makes) {
  const fs::path list = folder / kChecksums;
  if (!is_there(list) && !makes) return {};
  std::string text;
  if (std::ifstream in(list); in) {
    for (std::string line; std::getline(in, line);) {
      const auto said = parse_checksums(line);
      if (!said || !said->contains(file)) text += line + "\n";
    }
  }
  if (!sum.empty()) text += sum + "  " + file + "\n";
  const fs::path draft = folder / (std::string(kChecksums) + ".new");
  unlink(draft.c_str());
  const int out = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (out < 0) return cannot("written", draft, std::strerror(errno));
  const bool written = write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(out) == 0;
  const std::string why = written ? "" : std::strerror(errno);
  close(out);
  if (!written) return cannot("written", draft, why);
  return move_file(draft, list);
}

/// A copy that nobody starts yet, on disk. Returns its checksum.
Result<std::string> make_draft(const fs::path& file, const fs::path& draft) {
  std::error_code error;
  fs::copy_file(file, draft, fs::copy_options::overwrite_existing, error);
  if (error) return cannot("written", draft, error.message());
  if (chmod(draft.c_str(), 0755) != 0) return cannot("made executable", draft, std::strerror(errno));
  const int descriptor = open(draft.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const std::string why = synced ? "" : std::strerror(errno);
  if (descriptor >= 0) close(descriptor);
  if (!synced) return cannot("written", draft, why);
  return sum_of(draft);
}

bool has_executables(const fs::path& folder) {
  const auto listing = PluginFolder(folder, Verify::kIfListed).read();
  return !listing || !listing->files.empty();
}

/// Puts a draft in a plugin's place, and what was there in that of the version before.
Result<void> put_in_place(const fs::path& folder, const std::string& name, const fs::path& draft,
                          const std::string& sum) {
  const fs::path place = folder / name;
  const bool makes_list = !is_there(place) && !has_executables(folder);
  if (is_there(place)) {
    const fs::path kept = hidden(folder, name, ".previous.new");
    unlink(kept.c_str());
    if (link(place.c_str(), kept.c_str()) != 0)
      return cannot("kept as the version before", place, std::strerror(errno));
    if (auto moved = move_file(kept, hidden(folder, name, kPrevious)); !moved) return moved;
  }
  // The list first: what runs goes on when its checksum is another, and what is new starts only with its own.
  if (auto listed = list_sum(folder, name, sum, makes_list); !listed) return listed;
  if (auto moved = move_file(draft, place); !moved) return moved;
  sync_folder(folder);
  return {};
}

Result<std::string> switch_plugin(const fs::path& folder, const std::string& name, bool on) {
  auto held = lock_folder(folder);
  if (!held) return held.error();
  const auto visible = [&](const std::string& file) { return folder / file; };
  const auto switched_off = [&](const std::string& file) { return hidden(folder, file, kDisabled); };
  const auto enabled = find_named(name, visible), disabled = find_named(name, switched_off);
  if (on ? enabled : disabled) return on ? *enabled : *disabled;
  const auto& found = on ? disabled : enabled;
  if (!found) return no_plugin(folder, name);
  auto moved = on ? move_file(switched_off(*found), visible(*found)) : move_file(visible(*found), switched_off(*found));
  if (!moved) return moved.error();
  sync_folder(folder);
  return *found;
}

}  // namespace

Result<std::vector<InstalledPlugin>> installed_plugins(const fs::path& folder) {
  const auto listing = PluginFolder(folder, Verify::kIfListed).read();
  if (!listing) return listing.error();
  std::vector<InstalledPlugin> found;
  for (const PluginFile& file : listing->files) {
    found.push_back({file.name, file.version, {}, false, file.verified, file.refusal});
  }
  std::error_code error;
  for (fs::directory_iterator each(folder, error); !error && each != fs::directory_iterator(); each.increment(error)) {
    const std::string name = each->path().filename();
    if (!name.starts_with('.') || !name.ends_with(kDisabled) || name.size() <= kDisabled.size() + 1) continue;
    found.push_back({name.substr(1, name.size() - 1 - kDisabled.size()),
                     known_sum(each->path()),
                     {},
                     true,
                     false,
                     "it is disabled"});
  }
  std::ranges::sort(found, {}, &InstalledPlugin::file);
  for (InstalledPlugin& plugin : found) {
    plugin.previous = known_sum(hidden(folder, plugin.file, kPrevious));
  }
  return found;
}

Result<std::string> install_plugin(const fs::path& folder, const fs::path& file, const std::string& sha256) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (!fs::exists(status)) return Error{Errc::kNotFound, "there is no file " + file.string()};
  const std::string name = file.filename();
  if (!fs::is_regular_file(status) || access(file.c_str(), X_OK) != 0) {
    return Error{Errc::kInvalidRequest, file.string() + " is no executable file: `chmod +x`, if it is to be one"};
  }
  if (!is_plugin_name(name)) {
    return Error{Errc::kInvalidRequest, "no folder starts a file of the name " + name + ": give it another"};
  }
  auto held = lock_folder(folder);
  if (!held) return held.error();
  if (is_there(hidden(folder, name, kDisabled))) {
    return Error{Errc::kConflict, name + " is disabled: `muster plugin enable " + plugin_name(name) + "` first"};
  }
  const fs::path draft = folder / (name + ".new");
  auto sum = make_draft(file, draft);
  if (sum && !sha256.empty() && *sum != sha256) {
    sum = Error{Errc::kInvalidRequest, file.string() + " has the checksum " + *sum + ", not " + sha256};
  }
  const bool is_new = sum && known_sum(folder / name) != *sum;
  auto put = is_new ? put_in_place(folder, name, draft, *sum) : Result<void>();
  unlink(draft.c_str());  // of what has not come to its place
  if (!sum) return sum.error();
  if (!is_new) put = list_sum(folder, name, *sum, false);
  if (!put) return put.error();
  return name;
}

Result<std::string> roll_back_plugin(const fs::path& folder, const std::string& name) {
  auto held = lock_folder(folder);
  if (!held) return held.error();
  const auto found = find_named(name, [&](const std::string& file) { return folder / file; });
  if (!found) return no_plugin(folder, name);
  const fs::path place = folder / *found, before = hidden(folder, *found, kPrevious);
  if (!is_there(before)) {
    return Error{Errc::kNotFound, "of " + *found + " no version before this one is kept in " + folder.string()};
  }
  const auto sum = sum_of(before);
  if (!sum) return sum.error();
  if (auto listed = list_sum(folder, *found, *sum, false); !listed) return listed.error();
  if (renameat2(AT_FDCWD, before.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0) {
    return cannot("put in its place", before, std::strerror(errno));
  }
  sync_folder(folder);
  return *found;
}

Result<std::string> enable_plugin(const fs::path& folder, const std::string& name) {
  return switch_plugin(folder, name, true);
}

Result<std::string> disable_plugin(const fs::path& folder, const std::string& name) {
  return switch_plugin(folder, name, false);
}

Result<std::string> remove_plugin(const fs::path& folder, const std::string& name) {
  auto held = lock_folder(folder);
  if (!held) return held.error();
  auto found = find_named(name, [&](const std::string& file) { return folder / file; });
  if (!found) found = find_named(name, [&](const std::string& file) { return hidden(folder, file, kDisabled); });
  if (!found) return no_plugin(folder, name);
  for (const fs::path& path : {folder / *found, hidden(folder, *found, kDisabled), hidden(folder, *found, kPrevious)}) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return cannot("removed", path, std::strerror(errno));
  }
  if (auto listed = list_sum(folder, *found, {}, false); !listed) return listed.error();
  sync_folder(folder);
  return *found;
}

}  // namespace muster::cli
