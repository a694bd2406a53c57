#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
};

/// Whether it is what it was when it was found. Reads a file again whose checksum is listed: times can be set back.
bool unchanged(const PluginFile& file);

inline constexpr std::size_t kMaxPlugins = 256;                  // of a folder
inline constexpr std::uint64_t kMaxPluginBytes = 1ULL << 30;     // of a file
inline constexpr std::uintmax_t kMaxChecksumBytes = 1ULL << 20;  // of the list

/// The executables of a folder. Refuses what others than root and the user that runs this could have put there. Reads a
/// file again only when it was touched. Thread: one.
class PluginFolder {
 public:
  PluginFolder(std::string path, Verify verify);

  struct Listing {
    std::vector<PluginFile> files;  // by name
    std::string fault;              // why none may be started: of the checksums, or of the folder as a whole
  };
  /// errors   kNotFound: it is no folder that can be read; kLimit: more than kMaxPlugins executables
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
  const PluginFile& look(const std::string& name, const Entry& entry);

  std::string path_;
  Verify verify_;
  std::map<std::string, PluginFile> seen_;
};

}  // namespace muster::cli
