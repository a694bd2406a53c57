#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/jsonpath.h"
#include "schema/messages.h"

namespace muster {

inline constexpr std::size_t kMaxLabelBytes = 256;

/// How the resources of one plugin are called: its query, which a type's own query overrides. Immutable. thread: any
class Labels {
 public:
  Labels() = default;  // native ids

  /// errors   kMalformed: a query cannot be understood; kTooLarge: it, or all of them with it, is beyond the bounds of
  ///          query_compiler.h. The message names the type it belongs to
  static Result<Labels> compile(const Manifest& manifest);

  /// Stands for all queries; empty when there is none.
  [[nodiscard]] const std::string& version() const { return version_; }
  /// Whether the type has a query; where it has none, there is nothing to parse for.
  [[nodiscard]] bool applies(std::string_view type) const { return query(type) != nullptr; }

  /// Text of the first string (not empty), number or boolean that the type's query selects, else the native id; cut
  /// to kMaxLabelBytes between two characters. It is the native id, too, when the query looks at more nodes than
  /// `budget` has left.
  [[nodiscard]] std::string label(std::string_view type, const JsonDocument& properties, std::string_view native_id,
                                  Budget& budget) const;
  /// The same for JSON text, which is parsed only when there is a query, with the usual visits of its size. Text that
  /// is no JSON gives the native id.
  [[nodiscard]] std::string label(std::string_view type, std::string_view properties_json,
                                  std::string_view native_id) const;

 private:
  [[nodiscard]] const JsonPath* query(std::string_view type) const;

  std::string version_;
  std::optional<JsonPath> default_;
  std::map<std::string, JsonPath, std::less<>> by_type_;
};

}  // namespace muster
