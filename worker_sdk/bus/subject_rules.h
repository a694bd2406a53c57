#pragma once

#include <cstdint>
#include <string_view>

#include "worker_sdk/bus/bus.h"

namespace muster {

/// Over this many bytes of subject and reply together the server may drop the connection (its control line is 4 KiB).
inline constexpr std::size_t kMaxSubjectBytes = 3072;

enum class Wildcards : std::uint8_t { kRefused, kAllowed };

/// Tokens separated by dots, none empty, no space or control character; where allowed, `*` stands for one whole token
/// and `>` for one or more at the end.
[[nodiscard]] bool valid_subject(std::string_view subject, Wildcards wildcards);

/// Both valid; `subject` without wildcards.
[[nodiscard]] bool subject_matches(std::string_view pattern, std::string_view subject);

/// Whether a subscription can be made like this. errors: kInvalidRequest
Result<void> check_subscription(std::string_view subject, std::string_view queue);

/// Whether a message can be sent like this; headers count towards `max_payload` (bytes).
/// errors   kInvalidRequest (subject, reply or a header that would break the protocol), kTooLarge
Result<void> check_outgoing(const Outgoing& message, std::size_t max_payload);

}  // namespace muster
