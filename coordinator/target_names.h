#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/config.h"
#include "coordinator/store.h"

namespace muster {

/// Which targets get another name, new by old: those whose new name no row has, or only one that gets another name
/// itself. However they stand in the file; once done, the same file asks for nothing. Pure.
std::map<std::string, std::string> renamed_targets(const std::vector<TargetConfig>& declared,
                                                   const std::vector<TargetRow>& rows);

/// The same targets in an order in which every name is free before another target gets it.
std::vector<const TargetConfig*> in_order_of_names(const std::vector<TargetConfig>& declared,
                                                   const std::map<std::string, std::string>& renamed);

}  // namespace muster
