#pragma once

#include <memory>
#include <string>

#include <spdlog/fwd.h>

#include "secrets.h"

namespace muster {

/// A logger for plugin code: `keys` before each line, its secrets replaced, then on to the sinks of `parent`.
/// `redactor`   outlives the logger
std::unique_ptr<spdlog::logger> redacting_logger(const spdlog::logger& parent, std::string keys,
                                                 const Redactor& redactor);

}  // namespace muster
