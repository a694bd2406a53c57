#pragma once

#include <map>
#include <string>

#include "coordinator/cli/output.h"
#include "coordinator/cli/settings.h"

/// The verbs that need no fleet. Each returns the exit status.
namespace muster::cli {

/// The text of a file; of standard input for `-`.
Result<std::string> read_input(const std::string& file);
/// What mistakes in it are told with.
std::string input_name(const std::string& file);

/// Validates a configuration or declaration by itself: the environment has no say.
/// `input`       path, or `-` for standard input
/// `variables`   for ${var:NAME}
int check(Screen& screen, const std::string& input, const std::map<std::string, std::string>& variables = {});

/// Prints the matches of a JSONPath selector in a JSON document as an array of {"path","value"}.
/// `file`   path, or `-` for standard input
int jsonpath(Screen& screen, const std::string& selector, const std::string& file);

/// Prints every mistake on `err`, a line each. Returns 2.
int report(Screen& screen, const std::vector<ConfigMistake>& mistakes);

}  // namespace muster::cli
