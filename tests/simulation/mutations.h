#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/seeds.h"

namespace muster::sim {

/// A way in which the product can be made wrong (schema/mutation.h).
struct Mutation {
  std::string name;
  std::string breaks;                // what does not hold any more
  std::vector<std::uint64_t> seeds;  // that show it; none: no seed has yet, as other guards stand behind this one
  Names without{};                   // parts that have come since it was shown
};

const std::vector<Mutation>& mutations();

/// Makes the product of this process wrong; an empty name makes it right again. False: there is no such mutation.
bool choose_mutation(const std::string& name);

}  // namespace muster::sim
