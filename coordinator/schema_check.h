#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "schema/messages.h"

namespace muster {

class CheckBudget;

/// A place in a document that a JSON Schema does not allow.
struct SchemaFault {
  std::string pointer;  // RFC 6901; empty: the document as a whole
  std::string message;
};

/// A JSON Schema (draft 7), compiled. What a type says of properties that only the system sets is not asked of
/// declarations. thread: one at a time
class SchemaCheck {
 public:
  /// errors   kMalformed: no schema that can be used, with the reason
  static Result<SchemaCheck> compile(const JsonText& schema);
  SchemaCheck(SchemaCheck&&) noexcept;
  SchemaCheck& operator=(SchemaCheck&&) noexcept;
  ~SchemaCheck();

  /// What stands at `unknown`, places like those of faults, is no fault, and neither is what may come of it.
  /// returns  the first of the faults, where there are many
  /// errors   kTooLarge: the schema asks more of the document than there is time for; the next gets half of that time
  [[nodiscard]] Result<std::vector<SchemaFault>> faults(const nlohmann::json& document,
                                                        const std::vector<std::string>& unknown = {}) const;

 private:
  struct Compiled;
  [[nodiscard]] std::vector<SchemaFault> structure_faults(const nlohmann::json& document,
                                                          const std::vector<std::string>& unknown,
                                                          CheckBudget& budget) const;
  explicit SchemaCheck(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace muster
