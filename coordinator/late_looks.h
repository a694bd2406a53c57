#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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
  /// A look that is of use only then: what may have been made or changed just now need not show before. Where another
  /// waits, that one comes first, and this one after it.
  void add_at(TimePoint at, std::string_view ns, const std::string& target, const std::string& type);

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
  /// When a target is looked at for a type, and the last time that somebody wants it looked at.
  struct Wait {
    TimePoint next, last;
  };
  struct Named {
    TimePoint not_before{};
    std::map<std::string, std::set<std::string>> targets{};         // at once, by type
    std::map<std::pair<std::string, std::string>, Wait> waiting{};  // by type and target
    std::size_t told = 0;
    std::uint64_t left_out = 0;
  };

  static void take_up(Named& named, TimePoint now);

  std::map<std::string, Named, std::less<>> named_;  // by namespace
  std::uint64_t& left_out_;
};

}  // namespace muster
