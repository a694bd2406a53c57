#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "coordinator/store.h"

namespace muster {

/// A set of hashes: 22 to 43 bytes for each, and mostly one look in memory. {0, 0} counts as {0, 1}.
class HashSet {
 public:
  /// Whether it was not there.
  bool insert(const Hash128& hash) {
    if (4 * (count_ + 1) > 3 * slots_.size()) grow();
    auto& slot = slots_[place_of(kept(hash))];
    const bool fresh = slot == kFree;
    slot = kept(hash);
    count_ += fresh ? 1 : 0;
    return fresh;
  }

  void erase(const Hash128& hash) {
    if (count_ == 0) return;
    auto hole = place_of(kept(hash));
    if (slots_[hole] == kFree) return;
    --count_;
    // Who stands behind it would not be found any more: each moves up that may.
    for (auto at = next(hole); slots_[at] != kFree; at = next(at)) {
      const auto wanted = slots_[at].low & mask();
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = kFree;
  }

  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  static constexpr Hash128 kFree{0, 0};
  static constexpr std::size_t kSmallest = 64;

  static Hash128 kept(const Hash128& hash) { return hash == kFree ? Hash128{0, 1} : hash; }
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & mask(); }

  /// Where a hash is, or belongs.
  [[nodiscard]] std::size_t place_of(const Hash128& hash) const {
    auto at = hash.low & mask();
    while (slots_[at] != kFree && slots_[at] != hash) at = next(at);
    return at;
  }

  void grow() {
    const auto old = std::exchange(slots_, std::vector<Hash128>(std::max(kSmallest, 2 * slots_.size()), kFree));
    for (const auto& hash : old) {
      if (hash != kFree) slots_[place_of(hash)] = hash;
    }
  }

  std::vector<Hash128> slots_;  // a power of two of them
  std::size_t count_ = 0;
};

}  // namespace muster
