#include "coordinator/cli/plugin_path.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace muster::cli {
namespace {

bool executable(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_executable(const std::string& name, const std::string& directories) {
  std::istringstream list(directories);
  for (std::string directory; std::getline(list, directory, ':');) {
    if (directory.empty()) continue;
    std::string path = std::filesystem::path(directory) / name;
    if (executable(path)) return path;
  }
  return {};
}

Result<std::string> find_plugin(const std::string& plugin, const std::string& beside, const Environment& env) {
  if (plugin.find('/') != std::string::npos) {
    if (executable(plugin)) return std::filesystem::absolute(plugin).string();
    return Error{Errc::kNotFound, plugin + " is not an executable file"};
  }
  const auto list = [&](const std::string& name) {
    const auto it = env.find(name);
    return it == env.end() ? std::string() : it->second;
  };
  const std::string libexec = (std::filesystem::path(beside).parent_path() / "libexec" / "muster").string();
  const std::string name = "muster-plugin-" + plugin;
  for (const std::string& directories : {beside, libexec, list("MUSTER_PLUGIN_PATH"), list("PATH")}) {
    if (std::string found = find_executable(name, directories); !found.empty()) return found;
  }
  return Error{Errc::kNotFound, "no plugin " + plugin + ": there is no executable " + name + " in " + beside + ", " +
                                    libexec + ", $MUSTER_PLUGIN_PATH or $PATH"};
}

std::string own_directory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

}  // namespace muster::cli
