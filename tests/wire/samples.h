#pragma once

#include <string_view>
#include <vector>

#include "schema/messages.h"

namespace muster::testing {

/// One value of a message type: every union member of the protocol occurs in some sample, and every field is set to
/// something that is not its default in at least one.
template <typename T>
struct Sample {
  std::string_view variant;
  T value;
};

/// Declared for each type that schema/codec.h encodes. The values are those of the golden files.
template <typename T>
std::vector<Sample<T>> samples();
template <>
std::vector<Sample<Job>> samples();
template <>
std::vector<Sample<JobReply>> samples();
template <>
std::vector<Sample<ResultAck>> samples();
template <>
std::vector<Sample<Announcement>> samples();
template <>
std::vector<Sample<AnnouncementReply>> samples();
template <>
std::vector<Sample<Heartbeat>> samples();
template <>
std::vector<Sample<RollCall>> samples();
template <>
std::vector<Sample<Control>> samples();
template <>
std::vector<Sample<Manifest>> samples();

}  // namespace muster::testing
