#pragma once

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

}  // namespace muster::jsonpath
