#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coordinator/hash_set.h"
#include "coordinator/store.h"
#include "coordinator/unread.h"
#include "schema/messages.h"

namespace muster {

struct HashOfHash128 {
  std::size_t operator()(const Hash128& hash) const noexcept { return hash.low; }
};

/// What the store holds of one scan, in memory while the scan runs: 64 bytes a row, found by binary search.
class ScanIndex {
 public:
  struct Entry : IndexEntry {
    bool seen = false;      // its id was listed, or is otherwise known to be there, in this run
    bool observed = false;  // and that it is the object itself
    bool moved = false;     // renamed in this run: `key` is of the id that it had
  };

  void load(Store& store, RowId scan);
  /// The entry that has the id now.
  [[nodiscard]] Entry* find(const Hash128& key);
  /// An entry of that uid that has not been observed yet; none for uid 0.
  [[nodiscard]] Entry* find_uid(std::uint64_t uid);
  [[nodiscard]] Entry* find_row(RowId row);
  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }
  void clear();

 private:
  std::vector<Entry> entries_;                               // by key
  std::vector<std::pair<std::uint64_t, std::size_t>> uids_;  // made when first asked for
  std::vector<std::pair<RowId, std::size_t>> rows_;          // likewise
};

/// An object whose children are to be listed.
struct ParentRef {
  RowId row = 0;  // 0: the root of the target
  std::string native_id;
  JsonText properties;  // only where a child type takes parameters from them
};

inline constexpr int kMaxBarrenPages = 1000;  // pages in a row that bring no id

/// A listing of one type below one parent, from its first page to its last.
struct Listing {
  ParentRef parent;
  std::unordered_set<std::uint64_t> tokens;  // hashes of the page tokens given so far
  int barren_pages = 0;                      // pages in a row without a new id
};

struct ScanCounts {
  std::uint64_t listed = 0, read = 0, filtered = 0, fresh = 0, changed = 0, unchanged = 0, missing = 0, errors = 0,
                skipped = 0, renamed = 0;
};

inline constexpr std::size_t kMaxDeferred = 10'000;             // observations that wait, of one kind
inline constexpr std::size_t kMaxDeferredBytes = 64ULL << 20U;  // of their properties and ids

struct PendingRead {
  std::string native_id;
  RowId parent = 0;
  std::uint64_t listed = 0;  // hash of what the list said of it
  int failures = 0;
};

/// An id that the filters left out when it was last read.
struct FilteredId {
  std::uint64_t listed = 0;  // hash of what the list said of it then
  bool seen = false;         // in this run
};

/// A row whose id is to be read, to see whether the object is still there.
struct PendingConfirmation {
  RowId row = 0;
  int failures = 0;
};

/// An observation that waits: of an id that is new, of an object that the store knows under another id (renamed, if the
/// old id proves to be gone), or of an object under an id that the store knows as another's, which may have moved.
struct Deferred {
  Item item;
  RowId parent = 0;
  std::uint64_t position = 0;  // of WriteLog
  bool filtered = false;       // the filters leave it out, unless it is what the store knows as managed
};

/// Observations that wait until more is known of a row, by that row.
class WaitingRoom {
 public:
  void add(RowId row, Deferred observation);
  /// In the order in which they came; empty when none waits.
  std::vector<Deferred> take(RowId row);
  /// The one that came first; none: none waits.
  [[nodiscard]] const Deferred* peek(RowId row) const;
  [[nodiscard]] bool holds(RowId row) const { return by_row_.contains(row); }
  /// The row after that one for which something waits; after 0 the first.
  [[nodiscard]] std::optional<RowId> next(RowId after) const;
  [[nodiscard]] bool empty() const { return by_row_.empty(); }
  [[nodiscard]] bool full() const { return count_ >= kMaxDeferred || bytes_ >= kMaxDeferredBytes; }

 private:
  std::map<RowId, std::vector<Deferred>> by_row_;  // many may wait for one row
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// The scan of one type in one target during one run.
struct Scan {
  /// kConfirming asks for what was not listed.
  enum class Phase : std::uint8_t { kListing, kSettled, kConfirming, kDone };

  const TypeDescriptor* type = nullptr;
  ScanRow row;
  Scan* parent = nullptr;         // may be itself
  std::vector<Scan*> children;    // may hold itself
  bool wants_properties = false;  // some child type takes parameters from this type's properties

  Phase phase = Phase::kListing;
  ScanIndex index;
  HashSet fresh;               // ids first seen in this run
  std::vector<RowId> parents;  // objects of this type whose children wait to be listed
  // Those that no list has shown, and that are there: what lies in them of their own type is asked for one by one.
  std::vector<RowId> late_parents;
  std::deque<std::pair<std::shared_ptr<Listing>, std::string>> next_pages;  // held back until reads have caught up
  std::deque<PendingRead> to_read;
  WaitingRoom deferred;                     // what may be renamed, by the row of the old id
  std::deque<PendingConfirmation> old_ids;  // of `deferred`, to be asked for
  WaitingRoom successors;                   // what has taken an id, by the row that had it
  std::vector<Deferred> released;           // successors of what was found under another id
  std::deque<PendingConfirmation> to_confirm;
  std::unordered_map<Hash128, FilteredId, HashOfHash128> filtered;  // by id, for types that are read
  std::size_t next_known = 0;                                       // of the index, to be read again
  std::size_t lists = 0, reads = 0, confirms = 0;                   // jobs on their way
  bool begun = false;                                               // the index is loaded, the first page asked for
  bool answered = false;                                            // with some page, or what was asked for
  bool listing_failed = false;  // something could not be listed: absence proves nothing
  bool overflowed = false;      // there is more than a run lists, which has been told
  bool complete = false;        // set at the end
  bool reads_items = false;     // the list gives ids only
  bool readable = true;         // the type can be asked for one object
  bool same_filters = false;    // the rows were judged by the filters of this run before
  UnreadProperties unread;
  bool told_unread = false;    // that the plugin gives some
  std::uint64_t unjudged = 0;  // resources that the filters could not judge; of the first it is told why
  ScanCounts counts;

  /// All listings and reads of this type have been answered.
  [[nodiscard]] bool answered_all() const;
  /// No more ids of this type are on their way.
  [[nodiscard]] bool received() const;
  /// All ids of this type are known and read.
  [[nodiscard]] bool listed() const;
  /// Nothing more comes of it: what is only needed meanwhile is let go.
  void close();
};

}  // namespace muster
