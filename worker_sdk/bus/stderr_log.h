#pragma once

#include <memory>
#include <string>

#include <spdlog/common.h>
#include <spdlog/fwd.h>

namespace muster {

/// A log on stderr: times in UTC, colour where a terminal takes it, each entry on one line whatever it holds, for what
/// others say must not look like an entry of its own.
std::shared_ptr<spdlog::logger> stderr_log(const std::string& name, spdlog::level::level_enum level, bool plain);

}  // namespace muster
