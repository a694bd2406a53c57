#pragma once

#include <map>
#include <string>

#include "coordinator/plan.h"

namespace muster {

/// Adds steps that delete what leaves a stack, what uses others before these, as their claims say it.
/// `leaving`   by name in the stack
/// `reason`    for people
void plan_deletions(const std::map<std::string, const PlanningView::Known*>& leaving, const std::string& reason,
                    PlanResult& result);

}  // namespace muster
