#pragma once

#include <string>
#include <string_view>

#include "job.capnp.h"
#include "manifest.capnp.h"
#include "reply.capnp.h"
#include "schema/codec.h"
#include "worker.capnp.h"

/// Every message of the protocol, for Catch2's TEMPLATE_TEST_CASE.
#define MUSTER_MESSAGES                                                                              \
  muster::Job, muster::JobReply, muster::ResultAck, muster::Announcement, muster::AnnouncementReply, \
      muster::Heartbeat, muster::RollCall, muster::Control, muster::Manifest

namespace muster::testing {

/// The generated type behind a message, and its name.
template <typename T>
struct Wire;

#define MUSTER_WIRE(TYPE)                            \
  template <>                                        \
  struct Wire<TYPE> {                                \
    using Root = wire::TYPE;                         \
    static constexpr std::string_view kName = #TYPE; \
  };
MUSTER_WIRE(Job)
MUSTER_WIRE(JobReply)
MUSTER_WIRE(ResultAck)
MUSTER_WIRE(Announcement)
MUSTER_WIRE(AnnouncementReply)
MUSTER_WIRE(Heartbeat)
MUSTER_WIRE(RollCall)
MUSTER_WIRE(Control)
MUSTER_WIRE(Manifest)
#undef MUSTER_WIRE

}  // namespace muster::testing
