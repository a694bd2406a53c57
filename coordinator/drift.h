#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/declaration.h"
#include "coordinator/event_log.h"
#include "coordinator/property_rules.h"
#include "coordinator/registry.h"
#include "coordinator/store.h"

namespace muster {

/// What has drifted and wants to be put back.
struct Reversion {
  std::string stack, name;
};

/// Compares managed rows with what they were declared as. Store errors are thrown as StoreFailure.
/// Thread: loop thread only.
class Drift {
 public:
  Drift(Store& store, Registry& registry, EventLog& events) : store_(store), registry_(registry), events_(events) {}

  /// A managed row was read and differs from what it was: marks it, tells of it, notes what is to be put back, or takes
  /// what is there as declared, as its declaration says.
  void judge(const ResourceRecord& row);
  /// Takes the mark off a managed row that is as declared again; of one that is not, all has been told.
  void unmark(const ResourceRecord& row);
  /// A managed row is gone.
  void gone(const ResourceRecord& row);

  /// What is to be put back, since the last call.
  std::vector<Reversion> take_reversions() { return std::exchange(reversions_, {}); }

 private:
  struct Found;
  std::optional<Found> look(const ResourceRecord& row);
  /// Null: no plugin has said what the type is like.
  const PropertyRule* rules_of(std::string_view type);

  Store& store_;
  Registry& registry_;
  EventLog& events_;
  std::vector<Reversion> reversions_;
  struct Rules {
    std::shared_ptr<const Manifest> of;
    PropertyRule rule;
  };
  std::map<std::string, Rules, std::less<>> rules_;  // by type
};

/// The declared properties with the references filled in that the stack's rows answer; pointers of the others go to
/// `unknown`.
nlohmann::json declared_values(const DeclaredResource& resource, const std::string& stack, Store& store,
                               std::vector<std::string>& unknown);

}  // namespace muster
