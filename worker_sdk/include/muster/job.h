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

// ---- Changes. Each may come more than once with the same `idempotency_key`: after an answer was lost, a worker died
// or a call was cut off. Whatever comes so, one key changes one object, once.

struct CreateRequest {
  TargetInfo target;
  std::string type;
  Json properties;                   // as declared, a null where absence is; secrets resolved
  std::optional<ParentInfo> parent;  // as in ListRequest
  std::string idempotency_key;
};

struct UpdateRequest {
  TargetInfo target;
  std::string type;
  std::string native_id;
  Json prior;    // as last read
  Json desired;  // the whole object as it is wanted; secrets resolved
  Json patch;    // RFC 6902, from prior to desired
  std::string idempotency_key;
  Precondition precondition;  // violates() checks it
};

struct DeleteRequest {
  TargetInfo target;
  std::string type;
  std::string native_id;
  std::string idempotency_key;
  Precondition precondition;
};

struct StatusRequest {
  TargetInfo target;
  std::string type;
  std::string request_id;  // as Mutation::in_progress gave it
  std::string native_id;   // empty where it was not known
};

/// How a change went.
class Mutation {
 public:
  /// Done: the object as it is now, native id included.
  Mutation(Resource resource);  // NOLINT(google-explicit-constructor)
  /// The same of an object that has just been read.
  static Result<Mutation> of(Result<Resource> read);
  /// Done: the object is gone, or was not there.
  static Mutation deleted();
  /// The system works on it; the coordinator asks the type's status function.
  /// `retry_after`  when to ask; 0: the coordinator chooses
  static Mutation in_progress(std::string request_id, std::string native_id = {}, Millis retry_after = Millis{0});

 private:
  friend class Plugin;
  Mutation() = default;
  MutationStatus status_ = MutationStatus::kSuccess;
  std::string request_id_;
  Millis retry_after_{0};
  bool gone_ = false;
  Resource resource_;
};

/// Whether `current` is another object, or in another state, than the precondition says: answer with conflict(). Ask as
/// close to the change as the system allows.
bool violates(const Precondition& precondition, const Resource& current);

struct InspectRequest {
  TargetInfo target;
};

struct Inspection {
  std::string system{};                // stable identity of the system behind the target; empty: can't tell
  std::vector<MatchFilter> filters{};  // hold for this target
  std::vector<std::string> types{};    // those of the plugin's types that this target has; empty: all
};

}  // namespace muster
