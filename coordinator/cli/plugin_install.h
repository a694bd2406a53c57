#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "schema/result.h"

/// The plugins of a folder, as they are put there and taken away: beside each one the version before it, hidden as
/// `.NAME.previous`; one that is switched off is `.NAME.disabled`. Where the folder has a list of checksums it is kept
/// in step. Whoever runs the folder sees a change as one rename. Each call holds the folder's `.lock`, and refuses with
/// kConflict while another does. Names are a file's, or what people call it (`fs` of `muster-plugin-fs`).
namespace muster::cli {

/// A plugin of a folder.
struct InstalledPlugin {
  std::string file;      // name in the folder when it is switched on
  std::string version;   // SHA-256; empty where it cannot be read
  std::string previous;  // SHA-256 of the version before it; empty: there is none
  bool disabled = false;
  bool verified = false;  // its checksum is listed
  std::string refusal;    // why it is not started; empty: it is
};

/// By name.
/// errors   kNotFound: it is no folder that can be read; kLimit: more than kMaxPlugins executables
Result<std::vector<InstalledPlugin>> installed_plugins(const std::filesystem::path& folder);

/// Puts a copy of an executable into a folder. The first one of a folder begins its list of checksums.
/// `sha256`   what the copy must have; empty: anything
/// returns    its name in the folder
/// errors     kNotFound: no such file or folder; kInvalidRequest: it is none that a folder starts, or has another
///            checksum; kConflict; kInternalFailure: it cannot be written
Result<std::string> install_plugin(const std::filesystem::path& folder, const std::filesystem::path& file,
                                   const std::string& sha256);

/// Puts the version before in its place, and keeps the present one in that one's: twice is as it was.
/// errors   as below
Result<std::string> roll_back_plugin(const std::filesystem::path& folder, const std::string& name);

/// Switches a plugin on or off. One that is so already stays.
/// errors   kNotFound: there is none; kConflict; kInternalFailure
Result<std::string> enable_plugin(const std::filesystem::path& folder, const std::string& name);
Result<std::string> disable_plugin(const std::filesystem::path& folder, const std::string& name);

/// Takes a plugin away, with the version before it and its checksum.
Result<std::string> remove_plugin(const std::filesystem::path& folder, const std::string& name);

}  // namespace muster::cli
