#pragma once

#include <cstddef>
#include <vector>

#include "schema/messages.h"

namespace muster {

/// The messages that carry an encoded reply: itself, or numbered parts where it is larger than the server's payload
/// limit (bytes). A result over 64 MiB or 4096 parts is replaced by LIMIT.
/// `ids`   whose ids the parts bear; its body is not looked at
std::vector<Bytes> in_parts(const JobReply& ids, Bytes whole, std::size_t max_payload);

/// The reply without its body.
JobReply envelope(const JobReply& reply);

}  // namespace muster
