#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "muster/job.h"

namespace muster {

/// A plugin broke its contract; what() says how. Caught by Plugin::run, which names plugin, type and job.
struct ContractViolation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The answers of plugin functions as the protocol's values, checked: ids of 1 byte to 16 KiB of UTF-8, none twice in a
/// page, JSON objects as properties, messages in UTF-8. Throw ContractViolation.
ListResult checked(ListPage page, ListGives gives);
ReadItem checked(Result<Resource> answer, std::string_view native_id);
InspectResult checked(Inspection inspection);
MutationResult checked(MutationResult result);
Error checked(Error error);

/// Makes a result fit the protocol: messages are cut, between characters, to 4 KiB, and properties of a change that are
/// over 256 KiB left out: they are read. Not done by checked(): a secret that is cut in two is not found any more.
void fit_bounds(JobResult& result);
void shorten_message(std::string& message);

/// `text` for people: where it is not UTF-8, percent-encoded.
std::string presentable(std::string_view text);

}  // namespace muster
