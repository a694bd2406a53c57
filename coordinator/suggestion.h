#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A word of the user's in a message: quoted, and cut when it is long.
std::string shown(std::string_view text);

std::string joined(const std::vector<std::string>& texts, std::string_view separator = ", ");

/// What to say of a word that is none of `known`: which of them was meant, or all of them; empty when there are none.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace muster
