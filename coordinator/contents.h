#pragma once

#include <vector>

#include "coordinator/plan.h"

namespace muster {

/// Looks at what lies in the objects that a plan deletes or makes anew, and goes with them. Resources that the plan
/// does not delete, or make anew behind them, are mistakes; of what no stack has the reasons of the steps tell.
std::vector<PlanMistake> judge_contents(Plan& plan, PlanningView& view);

}  // namespace muster
