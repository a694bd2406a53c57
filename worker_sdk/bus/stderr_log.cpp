#include "worker_sdk/bus/stderr_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "schema/shown_text.h"
#include "worker_sdk/bus/stderr_gate.h"

namespace muster {
namespace {

/// The entry's text, whatever it holds.
class OneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm&, spdlog::memory_buf_t& out) override {
    out.append(std::string_view(shown_text({line.payload.data(), line.payload.size()})));
  }
  [[nodiscard]] std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

using ColourSink = spdlog::sinks::stderr_color_sink_mt;

/// Leaves entries out while nobody reads them, and says how many.
class PatientSink final : public ColourSink {
 public:
  explicit PatientSink(spdlog::color_mode mode) : ColourSink(mode) {}
  void log(const spdlog::details::log_msg& entry) override {
    const std::scoped_lock lock(gate_mutex_);
    if (!gate_.open()) {
      ++left_out_;
      return;
    }
    if (left_out_ > 0) {
      const auto text =
          "nobody read this log: " + std::to_string(std::exchange(left_out_, 0)) + " entries are left out";
      ColourSink::log({entry.logger_name, spdlog::level::warn, text});
    }
    ColourSink::log(entry);
  }

 private:
  std::mutex gate_mutex_;
  StderrGate gate_;
  std::uint64_t left_out_ = 0;
};

}  // namespace

std::shared_ptr<spdlog::logger> stderr_log(const std::string& name, spdlog::level::level_enum level, bool plain) {
  const auto mode = plain ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  auto log = std::make_shared<spdlog::logger>(name, std::make_shared<PatientSink>(mode));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<OneLine>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %n %*");
  log->set_formatter(std::move(formatter));
  log->set_level(level);
  log->flush_on(level);
  return log;
}

void hold_standard_streams() {
  int opened = -1;
  do opened = open("/dev/null", O_RDONLY);
  while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0) close(opened);
}

}  // namespace muster
