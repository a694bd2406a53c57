#pragma once

#include <string>
#include <vector>

namespace muster {

/// One step of a plan, short: what it was made from. Two plans that are the same have the same basis.
struct PlanBasis {
  std::string where;  // STACK/NAME, or `target NAME`
  std::string action, hash;
  std::string details;  // for people: what it would change
};

/// Where two plans differ, for people; empty: nowhere.
std::vector<std::string> moved(const std::vector<PlanBasis>& before, const std::vector<PlanBasis>& now);

}  // namespace muster
