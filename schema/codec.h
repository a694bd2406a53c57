#pragma once

#include <string_view>

#include "schema/messages.h"

namespace muster {

/// Encodes a message as one Cap'n Proto message in the standard unpacked stream framing.
/// thread   any
/// source   the .capnp files beside this one
Bytes encode(const Job& message);
Bytes encode(const JobReply& message);
Bytes encode(const ResultAck& message);
Bytes encode(const Announcement& message);
Bytes encode(const AnnouncementReply& message);
Bytes encode(const Heartbeat& message);
Bytes encode(const RollCall& message);
Bytes encode(const Control& message);
Bytes encode(const Manifest& message);

/// Decodes one message; T is one of the types above.
/// `bytes`   need not be aligned and may be freed after the call
/// errors    kMalformed: truncated, trailing garbage, broken pointers, an unknown union member or enum value,
///           text that is not UTF-8, or a bound of messages.h exceeded; the message says which field
/// thread    any
template <typename T>
Result<T> decode(std::string_view bytes);

template <>
Result<Job> decode(std::string_view bytes);
template <>
Result<JobReply> decode(std::string_view bytes);
template <>
Result<ResultAck> decode(std::string_view bytes);
template <>
Result<Announcement> decode(std::string_view bytes);
template <>
Result<AnnouncementReply> decode(std::string_view bytes);
template <>
Result<Heartbeat> decode(std::string_view bytes);
template <>
Result<RollCall> decode(std::string_view bytes);
template <>
Result<Control> decode(std::string_view bytes);
template <>
Result<Manifest> decode(std::string_view bytes);

}  // namespace muster
