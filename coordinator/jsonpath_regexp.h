#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "coordinator/query_compiler.h"

namespace re2 {
class RE2;
}

namespace muster::jsonpath {

/// Compiles an I-Regexp (RFC 9485). `^` and `$`, which its grammar takes for ordinary characters, are anchors, as its
/// mapping to other dialects has them.
/// `pattern`   UTF-8
/// returns     null where it is none, or asks for what RE2 lacks: repetitions over 1000, `\p{Cn}` in brackets
/// errors      kTooLarge: as of QueryCompiler::regex
Result<std::shared_ptr<const re2::RE2>> compile_iregexp(std::string_view pattern, QueryCompiler& compiler);

/// What a match with a text of that size costs, in nodes looked at. RE2 follows as many ways at once as the pattern has
/// instructions, where it does not fare better.
std::size_t match_cost(const re2::RE2& pattern, std::size_t text_bytes);

}  // namespace muster::jsonpath
