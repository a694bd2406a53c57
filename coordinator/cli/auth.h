#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "schema/result.h"
#include "schema/subjects.h"

/// Who may say and hear what on the bus, as a nats-server is told.
namespace muster::cli {

/// Workers of one namespace and pool: a user of the bus.
struct WorkerPlace {
  std::string ns;
  std::string pool{kDefaultPool};
  auto operator<=>(const WorkerPlace&) const = default;
};

/// A user of the bus. It may do what is listed and nothing else.
struct BusUser {
  std::string name;                    // `coordinator`, `operator`, `observer`, `worker.FS.default`
  std::string inbox;                   // what the subjects begin with on which it hears answers: nobody else does
  std::vector<std::string> publish;    // subjects
  std::vector<std::string> subscribe;  // subjects; `SUBJECT GROUP`: in this queue group only
};

/// The users of a fleet, each with what its process needs.
/// errors   kInvalidRequest: names that are too long for an inbox
/// source   schema/SUBJECTS.md, permissions
Result<std::vector<BusUser>> bus_users(const Subjects& subjects, const std::set<WorkerPlace>& places);

/// The `accounts` block of a nats-server's configuration: one account for the fleet. The same arguments give the same
/// text.
/// `keys`   public NKey of each user, by name
std::string accounts_conf(const Subjects& subjects, const std::vector<BusUser>& users,
                          const std::map<std::string, std::string>& keys);

}  // namespace muster::cli
