#pragma once

#include <iosfwd>
#include <string>

namespace muster {

/// `muster jsonpath SELECTOR [FILE|-]`: writes the matches of `selector` in the JSON text that `in` holds to `out`, as
/// an array of {"path","value"} with normalised paths.
/// returns   the process's exit code: 0 done (also without a match); 2 with a line on `err`: the selector is invalid
///           (the line names the column) or `in` holds no JSON (the line names line and column)
int run_jsonpath(const std::string& selector, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace muster
