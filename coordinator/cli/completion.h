#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): another library's name
class App;
}

namespace muster::cli {

/// The completion script of a shell, made from the command line's own description.
/// `shell`   bash, zsh or fish
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace muster::cli
