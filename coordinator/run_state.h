#pragma once

#include <variant>

#include "coordinator/run.h"

namespace muster {

/// Whether a row of that state is in the list that users see.
inline bool is_listed(ResourceState state) {
  return state != ResourceState::kVanished && state != ResourceState::kFiltered;
}

/// One target in a run. Shared by the files that implement Run.
struct Run::TargetRun {
  enum class Phase : std::uint8_t { kWaiting, kInspecting, kScanning, kDone };

  TargetRow target;
  Lane lane;
  Phase phase = Phase::kWaiting;
  std::string manifest_hash;
  std::shared_ptr<const Manifest> manifest;
  std::shared_ptr<const FilterSet> filters = std::make_shared<const FilterSet>();
  std::shared_ptr<const Labels> labels = std::make_shared<const Labels>();
  std::size_t visits = kMaxVisits;  // left to its filters in this run beyond the usual ones of each resource
  std::vector<std::string> types;   // what the plugin says there is on this target; empty: all of the manifest
  std::vector<std::string> wanted;  // types that were asked for; empty: all
  bool rereads = false;             // known objects are read again, nothing is listed
  std::vector<std::string> stacks;  // of a reread: only what belongs to these; empty: all
  std::optional<std::unordered_set<RowId>> only;  // of a reread: these rows; none: all
  std::vector<std::unique_ptr<Scan>> scans;       // parents before children
  std::unordered_set<RowId> left;                 // rows that left the list in this run
  std::unordered_set<RowId> hidden;               // rows whose objects have ids by now that the filters leave out
  std::vector<RowId> to_leave;                    // filtered rows, with what is below them once all is listed
  std::vector<RowId> to_follow;                   // rows whose parent was replaced, until all is listed
  bool all_listed = false;                        // no more ids are on their way
  bool skipped = false;                           // not looked at in this run, or not to its end
  JobId inspection;                               // under way
  bool unanswered = false;                        // it did not even answer its inspection
  bool deserted = false;                          // no worker was there to ask it
  bool given_up = false;                          // for nobody has the version that the run began with
  bool outdated = false;                          // it has been declared anew since: what comes of it is not taken

  /// Version of all that says how its rows are kept and called.
  [[nodiscard]] std::string judged_by() const { return filters->version() + labels->version(); }
};

/// What a job that was submitted is for.
struct Run::Pending {
  struct Inspection {};
  struct Page {
    std::shared_ptr<Listing> listing;
    bool continued = false;  // the page after it has been asked for
  };
  struct Reads {
    std::vector<PendingRead> asked;
  };
  struct Confirmations {
    std::vector<PendingConfirmation> asked;
    std::vector<std::string> ids;  // of the same order
  };
  struct OldIds : Confirmations {};

  TargetRun* target = nullptr;
  Scan* scan = nullptr;
  std::variant<Inspection, Page, Reads, OldIds, Confirmations> what;
  std::uint64_t position = 0;  // of WriteLog, at its submission
};

}  // namespace muster
