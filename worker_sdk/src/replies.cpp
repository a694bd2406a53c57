#include "replies.h"

#include <algorithm>

#include "schema/codec.h"

namespace muster {
namespace {

constexpr std::size_t kEnvelopeBytes = 1024;  // what a part's own ids and framing take at most
constexpr std::size_t kMinPartBytes = 512;
constexpr std::size_t kMaxReplyBytes = 64 * 1024 * 1024;

}  // namespace

JobReply envelope(const JobReply& reply) {
  return {reply.fleet, reply.job, reply.token, reply.worker, reply.attempt, 0, {}};
}

std::vector<Bytes> in_parts(const JobReply& ids, Bytes whole, std::size_t max_payload) {
  if (whole.size() <= max_payload) return {std::move(whole)};
  const std::size_t room = std::max(max_payload, kEnvelopeBytes + kMinPartBytes) - kEnvelopeBytes;
  const std::size_t count = (whole.size() + room - 1) / room;
  if (whole.size() > kMaxReplyBytes || count > kMaxParts) {
    JobReply too_large = envelope(ids);
    too_large.calls = ids.calls;
    too_large.body =
        JobResult(Error{.code = Errc::kLimit, .message = "a result of " + std::to_string(whole.size()) + " bytes"});
    return {encode(too_large)};
  }
  std::vector<Bytes> parts;
  parts.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    JobReply part = envelope(ids);
    part.body = Part{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(count), whole.substr(i * room, room)};
    parts.push_back(encode(part));
  }
  return parts;
}

}  // namespace muster
