#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "coordinator/jsonpath.h"
#include "schema/result.h"

namespace re2 {
class RE2;
}

namespace muster {

// Bounds of what filters and labels say: it comes from whoever announces a plugin, and the loop thread compiles it.
inline constexpr std::size_t kMaxRegexBytes = 8 * 1024;
inline constexpr std::size_t kMaxRegexMemory = 128 * 1024;  // of RE2, with what it keeps of matches
inline constexpr std::size_t kMaxRegexes = 256;             // different ones of a set

/// Work that compiling all filters of a target, or all labels of a plugin, may cost. Its unit is a node looked at, some
/// ten nanoseconds, so this is a tenth of a second.
inline constexpr std::size_t kMaxCompileWork = 10'000'000;

/// Compiles what one set of queries is made of, equal texts once, within a bound of work and of memory. What a text may
/// cost at worst is counted before it is looked at.
class QueryCompiler {
 public:
  QueryCompiler() : own_(kMaxCompileWork), work_(own_) {}
  /// With what is left of `work`, which outlives it.
  explicit QueryCompiler(Budget& work) : own_(0), work_(work) {}
  QueryCompiler(const QueryCompiler&) = delete;
  QueryCompiler& operator=(const QueryCompiler&) = delete;

  /// errors   those of JsonPath::parse
  Result<JsonPath> path(const std::string& selector);
  /// A regular expression in RE2's syntax.
  /// errors   kMalformed: it is none, and why; kTooLarge: it is beyond the bounds above, or the set is with it
  Result<std::shared_ptr<const re2::RE2>> regex(std::string_view pattern);
  /// A JSON text to compare with.
  /// errors   those of JsonDocument::parse
  Result<std::shared_ptr<const JsonDocument>> value(const std::string& json);

  /// Counts what is compiled elsewhere.
  /// errors   kTooLarge: it is more than what is left
  Result<void> spend(std::size_t work);

 private:
  Budget own_;
  Budget& work_;
  std::map<std::string, JsonPath> paths_;
  std::map<std::string, std::shared_ptr<const re2::RE2>, std::less<>> regexes_;
  std::map<std::string, std::shared_ptr<const JsonDocument>> values_;
};

}  // namespace muster
