#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/schema_check.h"

namespace muster {

// A schema is a plugin's, and what it is asked about a user's: the library that checks one with the other gets neither
// to follow without end.

inline constexpr std::size_t kMaxFaults = 100;  // that are told of a document

/// The steps that a document may take with a schema, of some tenths of a microsecond each: references let a schema ask
/// the same more often than there is time for.
class CheckBudget {
 public:
  struct Spent {};  // what is thrown: through the library, which looks at no such thing

  explicit CheckBudget(std::size_t steps) : left_(steps) {}

  void take(std::size_t steps) {
    if (steps > left_) throw Spent();
    left_ -= steps;
  }

 private:
  std::size_t left_;
};

/// Takes out what the library would do in more than linear time or by recursion over a text (patterns, formats, unique
/// elements), or not survive, and what cannot be judged without these. Formats are notes to people. References are
/// written such that the library finds the same as why_not_followed() did.
void drop_unbounded(nlohmann::json& schema);

/// Whether a pattern stands where a choice depends on it, or elsewhere where guarded_faults() does not look.
bool has_hidden_patterns(const nlohmann::json& schema);
/// Puts the texts of `document` that match in the place of each pattern: for this document, it says the same.
void bind_patterns(nlohmann::json& schema, const nlohmann::json& document, CheckBudget& budget);

/// What patterns and `uniqueItems` of `schema` say against `document`, in linear time: those of properties and of
/// elements, at any depth, also behind references. A pattern that RE2 does not know is left to the plugin; nothing is
/// said of what stands at `unknown`, nor of more than kMaxFaults.
std::vector<SchemaFault> guarded_faults(const nlohmann::json& schema, const nlohmann::json& document,
                                        const std::vector<std::string>& unknown, CheckBudget& budget);

}  // namespace muster
