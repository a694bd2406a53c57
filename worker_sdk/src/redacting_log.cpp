#include "redacting_log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>

#include <utility>
#include <vector>

#include "contract.h"

namespace muster {
namespace {

class RedactingSink final : public spdlog::sinks::sink {
 public:
  RedactingSink(std::vector<spdlog::sink_ptr> sinks, std::string keys, const Redactor& redactor)
      : sinks_(std::move(sinks)), keys_(std::move(keys)), redactor_(redactor) {}

  void log(const spdlog::details::log_msg& line) override {
    std::string text = presentable({line.payload.data(), line.payload.size()});
    redactor_.redact(text);
    text.insert(0, keys_);
    spdlog::details::log_msg redacted = line;
    redacted.payload = text;
    for (const auto& next : sinks_) {
      if (next->should_log(line.level)) next->log(redacted);
    }
  }
  void flush() override {
    for (const auto& next : sinks_) next->flush();
  }
  void set_pattern(const std::string&) override {}  // the worker's own sinks have one
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  std::vector<spdlog::sink_ptr> sinks_;
  std::string keys_;
  const Redactor& redactor_;
};

}  // namespace

std::unique_ptr<spdlog::logger> redacting_logger(const spdlog::logger& parent, std::string keys,
                                                 const Redactor& redactor) {
  auto sink = std::make_shared<RedactingSink>(parent.sinks(), std::move(keys), redactor);
  auto log = std::make_unique<spdlog::logger>(parent.name(), std::move(sink));
  log->set_level(parent.level());
  log->flush_on(parent.flush_level());
  return log;
}

}  // namespace muster
