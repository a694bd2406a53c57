#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/context.h"
#include "muster/properties.h"
#include "schema/messages.h"

namespace muster {

/// The system a job is about. `config` has its secrets resolved.
struct TargetInfo {
  std::string id;
  std::string name;
  Json config;
};

struct ParentInfo {
  std::string type;
  std::string native_id;
  Json parameters;  // object: what the type's descriptor names of the parent's properties
};

struct ListRequest {
  TargetInfo target;
  std::string type;
  std::optional<ParentInfo> parent;
  std::string page_token;       // empty: first page
  std::uint32_t page_size = 0;  // wanted at most; never 0 in a call
};

struct ListPage {
  std::vector<Resource> items{};    // properties may stay empty when the type's descriptor says that List gives ids
  std::string next_page_token{};    // empty: the last page
  std::vector<Problem> problems{};  // what could not be listed: makes the listing incomplete
  std::uint32_t skipped = 0;        // left out on purpose
};

struct ReadRequest {
  TargetInfo target;
  std::string type;
  std::string native_id;
};

struct ReadManyRequest {
  TargetInfo target;
  std::string type;
  std::vector<std::string> native_ids;
};

struct InspectRequest {
  TargetInfo target;
};

struct Inspection {
  std::string system{};                // stable identity of the system behind the target; empty: can't tell
  std::vector<MatchFilter> filters{};  // hold for this target
  std::vector<std::string> types{};    // those of the plugin's types that this target has; empty: all
};

}  // namespace muster
