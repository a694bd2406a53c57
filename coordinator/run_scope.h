#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/store.h"

namespace muster {

/// How closely a run looks.
enum class Look : std::uint8_t {
  kDiscover,  // lists everything, reads what needs it, judges what is missing
  kReread,    // reads again what is known, to see what has drifted
};

/// What was asked for: some targets and types.
struct ScopePart {
  std::vector<std::string> targets{};  // names; empty: all that are to be discovered
  std::vector<std::string> types{};    // empty: all
  Look look = Look::kDiscover;
  std::vector<std::string> stacks{};  // of a reread: only what belongs to these; empty: all that is known
  bool operator==(const ScopePart&) const = default;
};

/// What a run looks at: all that was asked of it. Bounded: what is asked beyond 64 different parts widens it.
class RunScope {
 public:
  void add(ScopePart part);
  void add(const RunScope& other);
  /// What was asked for of a target is asked for under its new name.
  void rename_target(const std::string& was, const std::string& is);

  struct TargetScope {
    Look look = Look::kReread;
    std::vector<std::string> types;   // empty: all
    std::vector<std::string> stacks;  // of a reread; empty: all that is known
  };
  /// What is to be done with a target; none: nothing.
  [[nodiscard]] std::optional<TargetScope> of(const TargetRow& target) const;

  /// An array of `{"targets":[…],"types":[…],"look":"discover|reread","stacks":[…]}`.
  [[nodiscard]] JsonText json() const;
  static RunScope parse(const JsonText& json);

 private:
  std::vector<ScopePart> parts_;
};

}  // namespace muster
