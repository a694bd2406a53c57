#pragma once

#include "schema/messages.h"

namespace muster {

// Messages that are only written: their parts stay where they lie. What is sent for each job is not copied together
// first.

/// A Job; each member as there.
struct JobView {
  const FleetId& fleet;
  const JobId& id;
  const Token& token;
  std::uint16_t attempt;
  const std::string& ns;
  const std::string& pool;
  const Target& target;
  const std::string& type;
  const std::string& manifest;
  Millis lease;
  Millis deadline;
  Priority priority;
  const JobOperation& operation;
  Millis wait{0};
};

/// A JobReply; each member as there.
struct JobReplyView {
  const FleetId& fleet;
  const JobId& job;
  const Token& token;
  const WorkerId& worker;
  std::uint16_t attempt;
  std::uint32_t calls;
  const decltype(JobReply::body)& body;
};

/// As encode() of the messages themselves.
Bytes encode(const JobView& message);
Bytes encode(const JobReplyView& message);

}  // namespace muster
