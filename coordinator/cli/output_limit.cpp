#include "coordinator/cli/output_limit.h"

#include <algorithm>
#include <utility>

#include "schema/result.h"

namespace muster::cli {
namespace {

constexpr std::int64_t kMost = 1 << 20;        // bytes at once
constexpr std::int64_t kPerSecond = 64 << 10;  // bytes
constexpr std::size_t kLineCost = 64;          // bytes, of what stands before a line: short ones are bounded, too

}  // namespace

bool OutputLimit::admit(std::size_t line, TimePoint now) {
  const auto elapsed = std::min<TimePoint::duration>(now - filled_, std::chrono::seconds(kMost / kPerSecond));
  const auto whole = std::chrono::duration_cast<Millis>(elapsed);
  left_ = std::min(kMost, left_ + whole.count() * kPerSecond / 1000);
  filled_ = now - (elapsed - whole);
  open_ = left_ > 0 && (open_ || left_ >= kPerSecond);
  if (open_) {
    left_ -= static_cast<std::int64_t>(line + kLineCost);
  } else {
    left_out_ += line + 1;
  }
  return open_;
}

std::uint64_t OutputLimit::take_left_out() {
  return std::exchange(left_out_, 0);
}

}  // namespace muster::cli
