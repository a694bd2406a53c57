#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/objects.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

/// What goes wrong in one simulation; all of it drawn from its seed.
struct Faults {
  double loss = 0;         // share of messages that never arrive
  double duplication = 0;  // share that arrives twice
  Millis delay{0};         // of each message, at most
  double error_rate = 0;   // share of plugin reads that fail with a retriable error
  ChangeFaults changes;
  int worker_crashes = 0;
  int coordinator_crashes = 0;  // between two messages that it sends
  int disconnections = 0;       // of a process from the bus, for up to three seconds
  int stops = 0;                // of a process, for up to fifteen seconds
  int store_failures = 0;       // times in which nothing can be written
  int full_disks = 0;           // times in which workers cannot keep results
  int clock_jumps = 0;          // of the time of day
  int churns = 0;               // changes of the cloud while runs are on their way
  int edits = 0;                // changes of what commands have made, behind their back
  int partitions = 0;           // times in which some processes hear nothing of the others
  int drains = 0;               // of a worker, which ends, and is started again
  int joins = 0;                // workers that come while others work
  int outages = 0;              // times in which every call fails
  int throttlings = 0;          // times in which most calls are refused for being too many
  Millis slow_disk{0};          // a worker waits for its disk before it acts, at most
  int mixed_versions = 0;       // 1: workers have one of two manifests
  int liars = 0;                // 1: one of the workers breaks the protocol
  int renames = 0;              // of things, which have other ids then
  int successors = 0;           // times in which other things take the places of some, under their ids
  int filters = 0;              // times in which the cloud has other filters than before
  int narrow_looks = 0;         // runs that look at one type
  int second_target = 0;        // 1: the cloud is looked at through another target, too
  int depth = 0;                // 1: things lie in things that lie in others
  int folders = 0;              // 1: things lie in others of their type
  int stream = 0;               // events go to a stream; 1: always, n: and n-1 times it is not there for them
  int children = 0;             // 1: some of what commands make lies in other things that they make
  int nests = 0;                // 1: some of it lies in things of its own type
  int notes = 0;                // 1: some of what commands make has a value that is never read back
  int secrets = 0;              // 1: some of those values are in the environment of workers
  int crowds = 0;               // 1: others want nearly the same right after
  int parts = 0;                // 1: workers have to tell in parts what they have done
  int waits = 0;                // 1: reads may wait at workers for a slot
  int plans = 0;                // 1: some commands are planned, and begun a while later
  int gaps = 0;                 // 1: listings leave something out now and then, and say so
  int swaps = 0;                // times in which some things have each other's ids
  int narrowings = 0;           // times in which the cloud has some of its types only
  int loose = 0;                // 1: parts outlive what they lie in
  int revivals = 0;             // times in which something that was removed comes back under its id
  int unread = 0;               // 1: what its lists tell whole cannot be read by itself
  int no_uids = 0;              // 1: nothing tells things apart but their ids
  int strict = 0;               // 1: what something lies in cannot be deleted
  int settings = 0;             // times in which the coordinator is started with another configuration
  int forgets = 0;              // times in which a stack lets go of something, or of all
  Millis lag{0};                // until what was made is seen, at most
};

inline constexpr std::size_t kWorkers = 3;     // from the start
inline constexpr std::size_t kMaxWorkers = 5;  // with those that join; the process after them is the coordinator
inline constexpr std::size_t kDisks = 2;

/// One thing that happens to the fleet or to the cloud.
struct Act {
  enum class Kind : std::uint8_t {
    kWorkerCrash,
    kWorkerStart,
    kCoordinatorCrash,
    kCoordinatorStart,
    kDisconnect,
    kReconnect,
    kStop,
    kStoreFails,
    kStoreWorks,
    kDiskFull,
    kDiskFree,
    kClockJump,
    kChurn,
    kTrigger,
    kEdit,
    kPartition,
    kHeal,
    kDrain,
    kOutage,
    kOutageEnds,
    kThrottling,
    kThrottlingEnds,
    kWish,
    kRename,
    kSucceed,
    kFilter,
    kNarrowLook,
    kConfigure,
    kNarrow,
    kSwap,
    kRevive,
    kForget,
    kApply,
    kStream
  };
  Kind kind;
  std::size_t who = 0;  // a process, a disk, a wish, an answer, what becomes of the stream; of a partition one bit for
                        // each process that is cut off
};
using Plan = std::multimap<TimePoint, Act>;

Faults draw_faults(Random& random);
/// Those that came later, from a seed of their own, so that what a seed without them gives has stayed.
void draw_later_faults(Faults& faults, Random& random);
/// Takes the parts in `without` out of the faults. Returns the names of all that were there.
std::vector<std::string> leave_out(Faults& faults, const std::set<std::string>& without);
/// When what happens, of what happens at a time.
Plan plan_faults(const Faults& faults, TimePoint now, Random& random);
void plan_later_faults(const Faults& faults, TimePoint now, Random& random, Plan& plan);
/// Names of the parts that they are.
inline const std::set<std::string> kLaterFaults{
    "renames", "successors", "filters", "narrow-looks", "second-target", "depth", "folders",  "children",
    "nests",   "notes",      "secrets", "crowds",       "parts",         "plans", "settings", "stream"};

}  // namespace muster::sim
