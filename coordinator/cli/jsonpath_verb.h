#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace muster {

/// A JSON text and what messages call it.
struct JsonInput {
  std::string name;
  std::string text;
};

/// How matches are written: as one array, or each on a line of its own.
enum class MatchLayout { kArray, kLines };

/// `muster jsonpath SELECTOR [FILE|-]`: writes the matches of `selector` in a JSON text to `out`, as objects
/// {"path","value"} with normalised paths.
/// returns   the process's exit code: 0 done (also without a match); 2 with a line on `err`: the selector is invalid
///           (the line names the column) or `input` is no JSON (the line begins with name:line:column)
int run_jsonpath(const std::string& selector, const JsonInput& input, MatchLayout layout, std::ostream& out,
                 std::ostream& err);

}  // namespace muster
