#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/jsonpath.h"
#include "schema/messages.h"

namespace muster {

/// XXH3-128 in 32 hexadecimal digits: the version of what judges and names resources.
std::string hex_hash(std::string_view bytes);

/// The filters that hold for a target, of its plugin and of its configuration together, ready to judge resources.
/// Immutable. thread: any
class FilterSet {
 public:
  FilterSet();  // keeps everything
  ~FilterSet();
  FilterSet(FilterSet&&) noexcept;
  FilterSet& operator=(FilterSet&&) noexcept;

  /// errors   kMalformed: a path, a regular expression or a JSON value that cannot be understood; the message begins
  ///          with its place: `filter 2, condition 1: `, counted from 1
  ///          kTooLarge: one that is beyond the bounds of query_compiler.h, or all of them are together
  static Result<FilterSet> compile(const std::vector<MatchFilter>& filters);

  /// Whether a filter speaks of this type at all; where none does, there is nothing to parse for.
  [[nodiscard]] bool applies(std::string_view type) const;

  /// Whether a resource is kept: no include filter applies to its type, or one matches; and no exclude filter matches.
  /// `properties`   all of them, writable and read-only
  /// errors         kTooLarge: more nodes were to be looked at than `budget` has left, kMaxVisits without one
  [[nodiscard]] Result<bool> judge(std::string_view type, const JsonDocument& properties, Budget& budget) const;
  [[nodiscard]] Result<bool> judge(std::string_view type, const JsonDocument& properties) const;
  /// The same for JSON text, which is parsed only when a filter applies.
  /// errors   also those of JsonDocument::parse
  [[nodiscard]] Result<bool> judge(std::string_view type, std::string_view properties_json) const;

  /// Equal for equal filters in the same order, in any process; 32 hex digits.
  [[nodiscard]] const std::string& version() const { return version_; }
  /// The same before they are compiled.
  static std::string version_of(const std::vector<MatchFilter>& filters);

 private:
  struct Rule;
  std::vector<Rule> rules_;
  std::string version_;
};

}  // namespace muster
