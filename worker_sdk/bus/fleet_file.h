#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "schema/result.h"
#include "worker_sdk/bus/nats_bus.h"

namespace muster {

inline constexpr std::string_view kFleetFile = "nats.url";  // in a data directory

/// What one needs beside the URL to reach a fleet, by the keys that it has in that file.
std::array<std::pair<std::string_view, std::string*>, 7> beside_url(std::string& prefix, NatsOptions& nats);

/// Takes where the fleet is from the file in which a running `muster up` says so: the URL, or that of NATS on this
/// machine where there is none, and, a line KEY=VALUE each, what one needs beside it. What is not in it stays.
/// errors   kAccessDenied: it may not be read
Result<void> read_fleet_file(const std::filesystem::path& data_dir, std::string& prefix, NatsOptions& nats);

}  // namespace muster
