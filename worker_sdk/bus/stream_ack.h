#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The JetStream stream that answers so. A stream that takes in a subject acknowledges each message on it, before and
/// beside who is asked; none: it is another answer.
std::optional<std::string> acknowledging_stream(std::string_view answer);

}  // namespace muster
