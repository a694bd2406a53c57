#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/plan.h"
#include "coordinator/property_rules.h"

namespace muster {

/// What a step changes, as users see it: RFC 6902, that of a creation adding what is declared. A value that is null
/// because it is not shown has a reason beside it: `reference`, the text that it is declared by, or `hidden`.
/// What is taken away or replaced has, where it is known and short, its value as `was`.
/// `declared`   nullptr: a deletion
/// `there`      properties of what is changed, as the inventory has them; empty: not known
/// `rules`      of its type
nlohmann::json shown_patch(const PlanStep& step, const DeclaredResource* declared, std::string_view there,
                           const PropertyRule& rules);

}  // namespace muster
