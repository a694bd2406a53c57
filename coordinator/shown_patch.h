#pragma once

#include <nlohmann/json_fwd.hpp>

#include "coordinator/plan.h"
#include "coordinator/property_rules.h"

namespace muster {

/// What a step changes, as users see it: RFC 6902, that of a creation adding what is declared. A value that is null
/// because it is not shown has a reason beside it: `reference`, the text that it is declared by, or `hidden`.
/// `declared`   nullptr: a deletion
/// `rules`      of its type
nlohmann::json shown_patch(const PlanStep& step, const DeclaredResource* declared, const PropertyRule& rules);

}  // namespace muster
