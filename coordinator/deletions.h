#pragma once

#include <string>
#include <vector>

#include "coordinator/plan.h"

namespace muster {

/// Adds steps that delete what leaves a stack, what uses others before these, as their claims say it.
/// `leaving`   by their names; what was made twice has one name in two rows
/// `reason`    for people
void plan_deletions(const std::vector<const PlanningView::Known*>& leaving, const std::string& reason,
                    PlanResult& result);

}  // namespace muster
