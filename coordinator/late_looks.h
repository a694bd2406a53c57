#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/run_scope.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// How long the next look at what a namespace has waits for more of its late successes.
inline constexpr Millis kLateLookPause{10'000};
/// Late successes of a namespace that are told in that time.
inline constexpr std::size_t kMaxLateTold = 20;

/// What is looked at again because a change was applied after all when its step had ended without it. Whoever has the
/// key of one namespace brings that about as often as it likes: its types are looked at once in a while, all that was
/// named by then, and nothing that was is forgotten. Bounded by the targets and types that commands which are kept have
/// changed. Thread: loop thread only.
class LateLooks {
 public:
  /// `left_out`   counts late successes that are not told
  explicit LateLooks(std::uint64_t& left_out) : left_out_(left_out) {}

  /// Whether it is told, too; of a namespace so many are.
  bool add(std::string_view ns, const std::string& target, const std::string& type);

  /// Of one namespace.
  struct Due {
    std::string ns;
    std::vector<ScopePart> parts;  // one of each type
    std::uint64_t left_out = 0;    // late successes that were not told
  };
  /// What is looked at now.
  std::vector<Due> take(TimePoint now);
  [[nodiscard]] TimePoint next_due() const;

 private:
  struct Named {
    TimePoint not_before;
    std::map<std::string, std::set<std::string>> targets{};  // by type
    std::size_t told = 0;
    std::uint64_t left_out = 0;
  };

  std::map<std::string, Named, std::less<>> named_;  // by namespace
  std::uint64_t& left_out_;
};

}  // namespace muster
