#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/declaration.h"
#include "coordinator/property_rules.h"

namespace muster {

/// Whether properties, in their canonical form or as dump() writes them, name one of those that hold what is
/// write-only: few do, and need parsing.
bool may_hold_write_only(const PropertyRule& rules, const JsonText& properties);

/// A resource as its row keeps what it was last applied as, its claim: DeclaredResource as JSON, with digests for
/// write-only values; one that nobody knows, after a change of unknown outcome, is like no digest.
/// `digest`   the same for the same value, and of no use to a thief
JsonText claim_text(const DeclaredResource& resource, const PropertyRule& rules,
                    const std::function<std::string(const std::string&)>& digest);

/// Ends the name that a stack has for what was replaced, until that is deleted: none that could be declared.
inline constexpr std::string_view kReplaced = " (replaced)";
/// Ends the name of what something was declared in, once the stack has let go of that: none that could be declared.
inline constexpr std::string_view kForgotten = " (forgotten)";
/// The name that others refer to it by.
inline std::string declared_name(std::string_view name) {
  if (name.ends_with(kReplaced)) name.remove_suffix(kReplaced.size());
  return std::string(name);
}

/// What a claim says; none where it is empty or not ours.
std::optional<DeclaredResource> claimed(const JsonText& claim);

}  // namespace muster
