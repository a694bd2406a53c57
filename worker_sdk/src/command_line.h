#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include <spdlog/common.h>

#include "muster/worker.h"
#include "secrets.h"
#include "worker_sdk/bus/nats_bus.h"

namespace muster {

struct WorkerOptions {
  NatsOptions nats;
  std::string prefix;
  std::string pool;
  std::string id;  // that its supervisor knows it by; empty: one of its own
  std::uint16_t slots = 4;
  SecretPolicy secrets;
  std::filesystem::path state_dir;
  spdlog::level::level_enum log_level = spdlog::level::info;
};

/// The options of a plugin's executable, or the status to exit with: 0 after --help, --version and --manifest, which
/// are answered on stdout, 2 after bad usage, which is named on stderr.
std::variant<WorkerOptions, int> parse_command_line(int argc, const char* const* argv, const Plugin& plugin);

}  // namespace muster
