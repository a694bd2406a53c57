#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/cli/checksums.h"
#include "coordinator/config.h"
#include "schema/result.h"

namespace muster::cli {

/// Whether a file of that name can be a plugin: neither hidden, nor a checksum, nor what editors and copies leave for a
/// while (`x~`, `#x#`, `x.new`, `x.tmp`, `x.swp`, `x.part`).
bool is_plugin_name(std::string_view file_name);

/// `fs` of `muster-plugin-fs`: what people call it.
std::string plugin_name(std::string_view file_name);

/// An open file, closed at the end.
class OpenFile {
 public:
  explicit OpenFile(int descriptor);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// As it was when it was opened.
  [[nodiscard]] const struct stat& status() const { return opened_; }
  /// Whether `status` is of this file as it was when it was opened.
  [[nodiscard]] bool is(const struct stat& status) const;
  /// Whether it was written, or anything else was done to it, since it was opened.
  [[nodiscard]] bool touched() const;
  /// Whether it is what that path leads to.
  [[nodiscard]] bool lies_at(const std::string& path) const;

 private:
  int descriptor_;
  struct stat opened_ {};
};

/// An executable file as it was found.
struct PluginFile {
  std::string name;                      // of the file
  std::string path;                      // absolute
  std::string version;                   // SHA-256 of what is in it; empty where that could not be read
  std::string refusal;                   // why it must not be started; empty: it may be
  bool verified = false;                 // its checksum is listed
  std::shared_ptr<const OpenFile> file;  // what was read: executed itself where it is verified
  bool pending = false;                  // what is in it is not known yet: neither to be started nor refused
};

inline constexpr std::size_t kMaxPlugins = 256;                  // of a folder
inline constexpr std::uint64_t kMaxPluginBytes = 1ULL << 30;     // of a file
inline constexpr std::uintmax_t kMaxChecksumBytes = 1ULL << 20;  // of the list

/// Finds out whether a verified file is what it was when it was found. Reads it again, in portions: times can be set
/// back.
class Recheck {
 public:
  /// `file`   has been read, and its checksum is listed
  explicit Recheck(const PluginFile& file);
  /// Reads at most so many bytes more; how many it were.
  std::uint64_t read_on(std::uint64_t bytes) { return sum_.read_on(bytes); }
  [[nodiscard]] std::uint64_t left() const { return sum_.left(); }
  /// None: not all is read.
  [[nodiscard]] std::optional<bool> unchanged() const;

 private:
  std::shared_ptr<const OpenFile> file_;
  std::string version_;
  struct stat begun_ {};
  FileSum sum_;
};

/// The executables of a folder. Refuses what others than root and the user that runs this could have put there. Reads a
/// file again only when it was touched, in portions: what there is to read can take minutes. Thread: one.
class PluginFolder {
 public:
  PluginFolder(std::string path, Verify verify);

  struct Listing {
    std::vector<PluginFile> files;  // by name
    std::string fault;              // why none may be started: of the checksums, or of the folder as a whole
  };
  /// What is there. Reads no more of it than the list of checksums: what has to be read is pending.
  /// errors   kNotFound: it is no folder that can be read; kLimit: more than kMaxPlugins executables
  Result<Listing> look();
  /// Reads at most about so many bytes more of what is pending, what takes least first. A file that changes meanwhile
  /// stays pending, and is read from its beginning after the next look().
  /// returns   whether look() would tell more than before
  bool read_on(std::uint64_t bytes);
  /// Whether there is something to read.
  [[nodiscard]] bool reads() const { return next_to_read() != nullptr; }
  [[nodiscard]] bool reads(const std::string& name) const;
  /// All of this at once: nothing is pending.
  Result<Listing> read();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// What was found behind a name.
  struct Entry {
    struct stat status {};
    std::string trouble;  // why nothing is known of it; empty: an executable
  };
  /// errors   kNotFound, kLimit
  Result<std::map<std::string, Entry>> entries() const;
  struct Seen {
    PluginFile file;
    std::optional<FileSum> sum{};  // that is being taken
  };
  const PluginFile& look_at(const std::string& name, const Entry& entry);
  [[nodiscard]] const Seen* next_to_read() const;

  std::string path_;
  Verify verify_;
  std::map<std::string, Seen> seen_;
};

}  // namespace muster::cli
