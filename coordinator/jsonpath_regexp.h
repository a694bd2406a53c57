#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace re2 {
class RE2;
}

namespace muster::jsonpath {

/// Compiles an I-Regexp (RFC 9485). `^` and `$`, which its grammar takes for ordinary characters, are anchors, as its
/// mapping to other dialects has them.
/// `pattern`   UTF-8
/// returns     null where it is none, or asks for more than RE2 gives: repetitions over 1000, `\p{Cn}` in brackets
std::shared_ptr<const re2::RE2> compile_iregexp(std::string_view pattern);
/// The same for a pattern that a document gives, which may take less of memory and time: ten milliseconds.
std::shared_ptr<const re2::RE2> compile_iregexp_of_document(std::string_view pattern);

/// What a match with a text of that size costs, in nodes looked at. RE2 follows as many ways at once as the pattern has
/// instructions, where it does not fare better.
std::size_t match_cost(const re2::RE2& pattern, std::size_t text_bytes);

}  // namespace muster::jsonpath
