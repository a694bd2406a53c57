#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "muster/properties.h"
#include "schema/messages.h"

namespace muster {

/// The system a job is about. `config` has its secrets resolved.
struct TargetInfo {
  std::string id;
  std::string name;
  Json config;
};

/// What a function gets beside its request. Valid during the call, on its thread.
class JobContext {
 public:
  virtual ~JobContext() = default;
  /// Set when the job is cancelled or its deadline has come: return soon, whatever is returned then is dropped.
  /// Callbacks registered with it run on the thread that keeps the worker's leases: they must not block.
  [[nodiscard]] virtual std::stop_token stop_token() const = 0;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point deadline() const = 0;
  /// Counts calls to the provider, for rate limits; a function that counts none is charged one.
  virtual void count_calls(std::uint32_t calls) = 0;
  /// Logger whose lines carry job and target; resolved secrets are redacted.
  [[nodiscard]] virtual spdlog::logger& log() = 0;
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
  std::uint32_t page_size = 0;  // wanted at most
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
