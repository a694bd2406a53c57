#include "coordinator/worker_events.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "schema/subjects.h"

namespace muster {
namespace {

constexpr std::size_t kMaxTold = 1024;  // namespaces

}  // namespace

bool WorkerEvents::emit(std::string_view of, std::string_view what, std::string_view subject, JsonObject data,
                        TimePoint now) {
  const auto ns = std::string(valid_namespace(of) ? of : std::string_view());
  if (told_.size() >= kMaxTold && !told_.contains(ns)) {
    std::erase_if(told_, [&](const auto& entry) { return entry.second.paid <= now; });
  }
  auto& told = told_[told_.size() < kMaxTold || told_.contains(ns) ? ns : std::string()];
  told.paid = std::max(told.paid, now);
  if (told.paid - now > (rate_.at_once - 1) * rate_.every) {
    ++told.left_out;
    ++left_out_;
    return false;
  }
  told.paid += rate_.every;
  if (const auto left_out = std::exchange(told.left_out, 0); left_out > 0) {
    log_.warn("namespace={} left_out={}: so many other events of its workers were not told before {}", ns, left_out,
              what);
    data.number("left_out", left_out);
  }
  events_.emit(ns, what, subject, data.take());
  return true;
}

}  // namespace muster
