#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/config.h"
#include "coordinator/declaration.h"

namespace muster {

struct DeclarationFile {
  std::string name;  // for messages
  std::string text;
};

/// Where resources and their properties stand in files.
class DeclarationPlaces {
 public:
  struct Place {
    std::string file;
    int line = 0, column = 0;
  };
  void add(const std::string& stack, const std::string& resource, const std::string& pointer, Place place) {
    places_[stack + "\n" + resource + "\n" + pointer] = std::move(place);
  }
  /// Of the property, of what is around it, or of the resource; none where nothing is known of it.
  [[nodiscard]] std::optional<Place> find(const std::string& stack, const std::string& resource,
                                          std::string pointer) const;

 private:
  std::unordered_map<std::string, Place> places_;
};

/// What files declare, or every mistake in them.
struct DeclarationResult {
  std::vector<Declaration> stacks;  // files of one stack are one declaration
  std::vector<TargetConfig> targets;
  std::vector<ConfigMistake> mistakes;  // empty: all is good
};

/// Reads declarations:
///   stack: NAME
///   targets: as in muster.yaml
///   on_drift: observe | alert | revert | absorb       of resources that do not say
///   resources: [{name, type, target, properties, native_id, parent, depends_on, on_drift,
///                lifecycle: {protect, replace: delete-first | create-first}}]
/// Texts in properties may hold references (secret_text.h); names that they refer to must be declared in the stack.
/// `variables`   for ${var:NAME}
/// `places`      filled in when it is given
/// `cycles`      whether references that go in a circle are mistakes here; a plan tells them beside its own
enum class Cycles : std::uint8_t { kLeftToPlan, kMistakes };
DeclarationResult read_declarations(const std::vector<DeclarationFile>& files,
                                    const std::map<std::string, std::string>& variables,
                                    DeclarationPlaces* places = nullptr, Cycles cycles = Cycles::kLeftToPlan);

/// Whether a YAML text looks like a declaration, and not like a configuration.
bool looks_like_declaration(const std::string& yaml);

}  // namespace muster
