#include "coordinator/scan.h"

#include <algorithm>

#include "coordinator/must.h"

namespace muster {
namespace {

std::size_t bytes_of(const Item& item) {
  return item.native_id.size() + item.uid.size() + item.properties.size();
}

}  // namespace

void ScanIndex::load(Store& store, RowId scan) {
  clear();
  must(store.load_index(scan, [this](const IndexEntry& entry) { entries_.push_back({entry}); }));
  std::ranges::sort(entries_, {}, &Entry::key);
}

void ScanIndex::clear() {
  entries_ = {};
  uids_ = {};
  rows_ = {};
}

ScanIndex::Entry* ScanIndex::find(const Hash128& key) {
  const auto it = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
  return it != entries_.end() && it->key == key && !it->moved ? &*it : nullptr;
}

ScanIndex::Entry* ScanIndex::find_uid(std::uint64_t uid) {
  if (uid == 0 || entries_.empty()) return nullptr;
  if (uids_.empty()) {
    uids_.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) uids_.emplace_back(entries_[i].uid, i);
    std::ranges::sort(uids_);
  }
  auto it = std::ranges::lower_bound(uids_, uid, {}, &std::pair<std::uint64_t, std::size_t>::first);
  for (; it != uids_.end() && it->first == uid; ++it) {
    if (!entries_[it->second].observed) return &entries_[it->second];
  }
  return nullptr;
}

ScanIndex::Entry* ScanIndex::find_row(RowId row) {
  if (entries_.empty()) return nullptr;
  if (rows_.empty()) {
    rows_.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) rows_.emplace_back(entries_[i].row, i);
    std::ranges::sort(rows_);
  }
  const auto it = std::ranges::lower_bound(rows_, row, {}, &std::pair<RowId, std::size_t>::first);
  return it != rows_.end() && it->first == row ? &entries_[it->second] : nullptr;
}

void WaitingRoom::add(RowId row, Deferred observation) {
  ++count_;
  bytes_ += bytes_of(observation.item);
  by_row_[row].push_back(std::move(observation));
}

std::vector<Deferred> WaitingRoom::take(RowId row) {
  auto taken = by_row_.extract(row);
  if (!taken) return {};
  count_ -= taken.mapped().size();
  for (const auto& each : taken.mapped()) bytes_ -= bytes_of(each.item);
  return std::move(taken.mapped());
}

const Deferred* WaitingRoom::peek(RowId row) const {
  const auto it = by_row_.find(row);
  return it == by_row_.end() ? nullptr : &it->second.front();
}

std::optional<RowId> WaitingRoom::next(RowId after) const {
  const auto found = by_row_.upper_bound(after);
  return found == by_row_.end() ? std::nullopt : std::optional(found->first);
}

bool Scan::answered_all() const {
  const bool parents_known = parent == nullptr || parent == this ? begun : parent->listed();
  return parents_known && (parent == nullptr || (parent->parents.empty() && parent->late_parents.empty())) &&
         lists == 0 && reads == 0 && next_pages.empty() && to_read.empty();
}

bool Scan::received() const {
  return answered_all() && deferred.empty();
}

bool Scan::listed() const {
  return received() && successors.empty();
}

void Scan::close() {
  index.clear();
  fresh = {};
  filtered = {};
  successors = {};
  phase = Phase::kDone;
}

}  // namespace muster
