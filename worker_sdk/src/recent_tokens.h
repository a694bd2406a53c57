#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "schema/ids.h"

namespace muster {

/// Which tokens have come lately. It keeps a hash of each: where two tokens share one, the second is taken for a
/// repetition, and its job is sent again with another token.
class RecentTokens {
 public:
  RecentTokens() { known_.reserve(kKept); }

  /// False: it has come before.
  [[nodiscard]] bool insert(const Token& token) {
    const std::size_t hash = std::hash<Token>{}(token);
    if (!known_.insert(hash).second) return false;
    if (order_.size() < kKept) {
      order_.push_back(hash);
    } else {
      known_.erase(std::exchange(order_[oldest_], hash));
      oldest_ = (oldest_ + 1) % kKept;
    }
    return true;
  }

 private:
  static constexpr std::size_t kKept = 4096;
  std::vector<std::size_t> order_;  // a ring, once it is full
  std::size_t oldest_ = 0;
  std::unordered_set<std::size_t> known_;
};

}  // namespace muster
