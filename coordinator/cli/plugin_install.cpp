#include "coordinator/cli/plugin_install.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "coordinator/cli/checksums.h"
#include "coordinator/cli/plugin_folder.h"
#include "coordinator/cli/replace_file.h"
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

Result<void> move_file(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return cannot("renamed to " + to.string(), from, std::strerror(errno));
  return {};
}

Result<std::string> sum_of(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);  // whatever has the name
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

/// Has a folder's list say `sum` of `file`, nothing when it is empty, and of others what it says. Where there is no
/// list, `makes` says whether one is begun.
Result<void> list_sum(const fs::path& folder, const std::string& file, const std::string& sum, bool makes) {
  const fs::path list = folder / kChecksums;
  std::string text;
  if (is_there(list)) {
    std::error_code ignored;
    std::ifstream in(list);
    if (!in || !fs::is_regular_file(fs::symlink_status(list, ignored))) {
      return cannot("read", list, "it must be a regular file of yours");
    }
    for (std::string line; std::getline(in, line);) {
      const auto said = parse_checksums(line);
      if (!said || !said->contains(file)) text += line + "\n";
    }
  } else if (!makes) {
    return {};
  }
  if (!sum.empty() && file.find_first_of("\r\n") != std::string::npos) {  // which would spoil what it says of others
    return Error{Errc::kInvalidRequest,
                 "no line of " + list.string() + " can say the name " + file + ": give it another"};
  }
  if (!sum.empty()) text += sum + "  " + file + "\n";
  return replace_file(list, text, kPublic);
}

/// Fills an empty file, on disk, that everybody may execute.
bool copy_into(int to, const OpenFile& from) {
  for (off_t left = from.status().st_size; left > 0;) {
    const ssize_t count = sendfile(to, from.descriptor(), nullptr, static_cast<std::size_t>(left));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;  // it has been cut meanwhile: its checksum tells
    left -= count;
  }
  return fchmod(to, 0755) == 0 && fsync(to) == 0;
}

/// A copy that nobody starts yet. Returns its checksum.
Result<std::string> make_draft(const OpenFile& file, const fs::path& draft) {
  unlink(draft.c_str());  // a link would lead the copy elsewhere
  const int descriptor = open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate);
  if (descriptor < 0) return cannot("written", draft, std::strerror(errno));
  const OpenFile made(descriptor);
  if (!copy_into(descriptor, file)) return cannot("written", draft, std::strerror(errno));
  return sha256_of(descriptor, kMaxPluginBytes);
}

/// Whether there are plugins, switched off or not, that a list which is begun now would refuse.
bool has_plugins(const fs::path& folder) {
  const auto plugins = installed_plugins(folder);
  return !plugins || !plugins->empty();
}

/// What a folder's list says, to be said again where a change comes to nothing: what runs may start again.
class ListBefore {
 public:
  explicit ListBefore(const fs::path& folder) : path_(folder / kChecksums), text_(read_file(path_)) {}
  void put_back() const {
    if (text_) static_cast<void>(replace_file(path_, *text_, kPublic));
  }

 private:
  fs::path path_;
  Result<std::string> text_;
};

/// Puts a draft in a plugin's place, and what was there in that of the version before.
Result<void> put_in_place(const fs::path& folder, const std::string& name, const fs::path& draft,
                          const std::string& sum) {
  const fs::path place = folder / name, kept = hidden(folder, name, ".previous.new");
  const bool replaces = is_there(place);
  unlink(kept.c_str());
  if (replaces && link(place.c_str(), kept.c_str()) != 0) {
    return cannot("kept as the version before", place, std::strerror(errno));
  }
  // The list first: what runs goes on when its checksum is another, and what is new starts only with its own.
  const ListBefore list(folder);
  auto done = list_sum(folder, name, sum, !replaces && !has_plugins(folder));
  const bool listed = static_cast<bool>(done);
  if (done && replaces) done = move_file(kept, hidden(folder, name, kPrevious));
  if (done) done = move_file(draft, place);
  unlink(kept.c_str());  // where it has not come to its place
  if (!done && listed) list.put_back();
  if (!done) return done;
  sync_folder(folder);
  return {};
}

/// Puts a draft in the place of the same version, of which somebody may have changed the mode or the owner.
Result<void> put_again(const fs::path& folder, const std::string& name, const fs::path& draft, const std::string& sum) {
  auto done = list_sum(folder, name, sum, false);
  if (done) done = move_file(draft, folder / name);
  if (done) sync_folder(folder);
  return done;
}

/// Has two files take each other's name. Where the file system cannot do that at once, as NFS, the second has a third
/// name meanwhile. False: errno says why not.
bool exchange(const fs::path& first, const fs::path& second, const fs::path& meanwhile) {
  if (renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return false;
  unlink(meanwhile.c_str());
  return link(second.c_str(), meanwhile.c_str()) == 0 && rename(first.c_str(), second.c_str()) == 0 &&
         rename(meanwhile.c_str(), first.c_str()) == 0;
}

Result<std::string> switch_plugin(const fs::path& folder, const std::string& name, bool on) {
  auto held = lock_folder(folder);
  if (!held) return held.error();
  const auto visible = [&](const std::string& file) { return folder / file; };
  const auto switched_off = [&](const std::string& file) { return hidden(folder, file, kDisabled); };
  const auto enabled = find_named(name, visible), disabled = find_named(name, switched_off);
  if (on && enabled) return *enabled;
  if (!on && disabled && !enabled) return *disabled;
  const auto& found = on ? disabled : enabled;  // of two, as somebody copied one there, the one that runs is kept
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
  if (error) return Error{Errc::kNotFound, folder.string() + " cannot be read: " + error.message()};
  std::ranges::sort(found, {}, &InstalledPlugin::file);
  for (InstalledPlugin& plugin : found) {
    plugin.previous = known_sum(hidden(folder, plugin.file, kPrevious));
  }
  return found;
}

Result<std::string> install_plugin(const fs::path& folder, const fs::path& file, const std::string& sha256) {
  const std::string name = file.filename();
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) {
    const auto code = errno == ENOENT ? Errc::kNotFound : Errc::kInvalidRequest;
    return Error{code, file.string() + " cannot be read: " + std::strerror(errno)};
  }
  const OpenFile source(descriptor);
  if (!S_ISREG(source.status().st_mode) || access(file.c_str(), X_OK) != 0) {
    return Error{Errc::kInvalidRequest, file.string() + " is no executable file: `chmod +x`, if it is to be one"};
  }
  if (static_cast<std::uint64_t>(source.status().st_size) > kMaxPluginBytes) {
    return Error{Errc::kInvalidRequest, file.string() + " is larger than a folder starts: 1 GiB"};
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
  auto sum = make_draft(source, draft);
  if (sum && !sha256.empty() && *sum != sha256) {
    sum = Error{Errc::kInvalidRequest, file.string() + " has the checksum " + *sum + ", not " + sha256};
  }
  auto put = sum ? Result<void>() : Result<void>(sum.error());
  if (put) {
    const bool is_new = known_sum(folder / name) != *sum;
    put = is_new ? put_in_place(folder, name, draft, *sum) : put_again(folder, name, draft, *sum);
  }
  unlink(draft.c_str());  // of what has not come to its place
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
    return Error{Errc::kNotFound,
                 "of " + *found + " no version before this one is kept in " + folder.string() + ": install one"};
  }
  if (access(before.c_str(), X_OK) != 0) {  // in its place, it would be no plugin, and what runs would end
    return Error{Errc::kInvalidRequest, before.string() + " is no executable file: `chmod +x`, if it is to be one"};
  }
  const auto sum = sum_of(before);
  if (!sum) return sum.error();
  const ListBefore list(folder);
  if (auto listed = list_sum(folder, *found, *sum, false); !listed) return listed.error();
  if (!exchange(before, place, hidden(folder, *found, ".previous.new"))) {
    auto error = cannot("put in its place", before, std::strerror(errno));
    list.put_back();
    return error;
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
