#pragma once

#include <memory>
#include <string>

#include <spdlog/common.h>
#include <spdlog/fwd.h>

namespace muster {

/// A log on stderr: times in UTC, colour where a terminal takes it, each entry on one line whatever it holds, for what
/// others say must not look like an entry of its own, and nothing that a terminal would obey.
std::shared_ptr<spdlog::logger> stderr_log(const std::string& name, spdlog::level::level_enum level, bool plain);

/// Has standard input, output and error be there, at the begin of a process. Where one of them is closed, what is
/// opened next, a lock, a store or the bus, would get its number, and all that is said. Nothing can be read or written
/// there.
void hold_standard_streams();

}  // namespace muster
