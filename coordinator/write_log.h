#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "coordinator/scan.h"
#include "schema/mutation.h"

namespace muster {

/// Which objects commands have written lately, so that a list or read that was sent before is not taken for news of
/// them. In memory only: what was asked for before a restart is asked again after it.
class WriteLog {
 public:
  /// The place in the order of writes that an observation asked for now has.
  [[nodiscard]] std::uint64_t position() const { return position_; }

  /// A change of the object is under way: nothing that is observed of it counts.
  void begin(RowId scan, std::string_view native_id) { ++entries_[key(scan, native_id)].in_flight; }
  /// It has ended, and what is known of the object now is in the store.
  void end(RowId scan, std::string_view native_id) {
    auto& entry = entries_[key(scan, native_id)];
    if (entry.in_flight > 0) --entry.in_flight;
    entry.written = ++position_;
  }
  /// It was found to be as the store has it now: what was seen of it before is no news.
  void note(RowId scan, std::string_view native_id) {
    begin(scan, native_id);
    end(scan, native_id);
  }
  /// Whether what was asked for at `position` says nothing of the object any more.
  [[nodiscard]] bool outdates(std::uint64_t position, RowId scan, std::string_view native_id) const {
    if (entries_.empty() || MUSTER_MUTATION("old-observations")) return false;
    const auto it = entries_.find(key(scan, native_id));
    return it != entries_.end() && (it->second.in_flight > 0 || it->second.written > position);
  }
  /// Whether a command has written the object since observations began: what was loaded of it before may be old.
  [[nodiscard]] bool knows(RowId scan, std::string_view native_id) const {
    return !entries_.empty() && entries_.contains(key(scan, native_id));
  }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// No observation that was asked for before `position` is under way: what had been written by then is of no more
  /// interest.
  void forget(std::uint64_t position) {
    if (std::exchange(forgotten_, position) == position) return;
    std::erase_if(entries_,
                  [&](const auto& entry) { return entry.second.in_flight == 0 && entry.second.written <= position; });
  }

 private:
  struct Entry {
    int in_flight = 0;
    std::uint64_t written = 0;
  };
  static Hash128 key(RowId scan, std::string_view native_id) {
    auto hash = hash128(native_id);
    hash.high ^= static_cast<std::uint64_t>(scan) * 0x9e3779b97f4a7c15ULL;
    return hash;
  }

  std::unordered_map<Hash128, Entry, HashOfHash128> entries_;
  std::uint64_t position_ = 0;
  std::uint64_t forgotten_ = 0;
};

}  // namespace muster
