#pragma once

#include <string>

#include "coordinator/cli/settings.h"
#include "schema/result.h"

namespace muster::cli {

/// Path of a plugin's executable.
/// `plugin`   a name (`fs`: muster-plugin-fs is looked for beside muster, in ../libexec/muster, in $MUSTER_PLUGIN_PATH,
///            in $PATH) or a path (anything with a slash)
/// `beside`   the directory of the muster executable
/// errors     kNotFound: the message lists where it was looked for
Result<std::string> find_plugin(const std::string& plugin, const std::string& beside, const Environment& env);

/// Path of an executable in `directories`, a list with colons; empty when there is none.
std::string find_executable(const std::string& name, const std::string& directories);

/// The directory of the running executable.
std::string own_directory();

}  // namespace muster::cli
