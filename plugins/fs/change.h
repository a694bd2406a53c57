#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tree.h"

/// Changing a directory tree, one object at a time. An object is made under a name that no listing shows, or under
/// none at all, gets its content, mode and owner there, and then takes its place in one step: nobody sees it half done.
/// Thread: any.
namespace muster::fs {

/// What is not given stays as it is; of a new object: as the system makes it for this process.
struct Attributes {
  std::optional<std::uint32_t> mode{}, uid{}, gid{};
};

// Errors of all functions: what the errno means. Where something was done already, kNotStabilized. `parent` belongs to
// the tree's file system. `mark` is kept with the object where the file system can (user.muster.key); empty: none.

/// errors   also kAlreadyExists: the name is taken, nothing was changed. So with all three
Result<void> create_directory(const Directory& parent, const std::string& name, const Attributes& attributes,
                              const std::string& mark);
Result<void> create_file(const Directory& parent, const std::string& name, const std::string& content,
                         const Attributes& attributes, const std::string& mark);
Result<void> create_link(const Directory& parent, const std::string& name, const std::string& target,
                         const Attributes& attributes);

/// Puts another file, or link, in the place of the one that `expected` was seen of.
/// errors   also kConflict: there is another one by now, nothing was changed. So with set_attributes()
Result<void> replace_file(const Directory& parent, const std::string& name, const Status& expected,
                          const std::string& content, const Attributes& attributes, const std::string& mark);
Result<void> replace_link(const Directory& parent, const std::string& name, const Status& expected,
                          const std::string& target, const Attributes& attributes);
/// A link has no mode.
Result<void> set_attributes(const Directory& parent, const std::string& name, const Status& expected,
                            const Attributes& attributes);

/// errors   also kConflict: a directory with something in it, or a mount point
Result<void> remove(const Directory& parent, const std::string& name, Kind kind);

/// The mark of an object: none when it has none; an error when that cannot be known, as on a file system without them.
Result<std::optional<std::string>> mark_of(const Directory& parent, const std::string& name);
/// Whether a file has this very content. False also where it cannot be read.
bool has_content(const Directory& parent, const std::string& name, const std::string& content);

/// Removes what a killed worker left behind under hidden names: once an hour in each directory where something changes.
class Sweeper {
 public:
  void visit(const Directory& directory);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::chrono::steady_clock::time_point> visited_;
};

}  // namespace muster::fs
