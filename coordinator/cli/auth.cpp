#include "coordinator/cli/auth.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace muster::cli {
namespace {

const std::string kAny = "*";
constexpr std::string_view kOperatorInbox = "_INBOX_operator", kObserverInbox = "_INBOX_observer";
constexpr std::string_view kCoordinatorInbox = "_INBOX_coordinator";
/// Below it the operator hears answers of workers, who know its subject then; not those of the API, which they could
/// forge otherwise.
constexpr std::string_view kOperatorMicroInbox = "_INBOX_operator.micro";

std::string below(std::string_view inbox) {
  return std::string(inbox) + ".>";
}

std::string in_group(const std::string& subject, std::string_view group) {
  return subject + " " + std::string(group);
}

/// Where a coordinator that starts hears whether there is another fleet already: of all that it hears, what another
/// coordinator may say.
std::string answer_about_fleet() {
  return std::string(kCoordinatorInbox) + ".*.fleet";
}

void add_questions(std::vector<std::string>& subjects) {
  for (const std::string verb : {"PING", "INFO", "STATS"}) {
    subjects.push_back("$SRV." + verb);
    subjects.push_back("$SRV." + verb + ".>");  // of one name, and of one process
  }
}

BusUser coordinator_user(const Subjects& subjects) {
  const WorkerId worker(kAny);
  const std::string stream = subjects.event_stream();
  BusUser user{
      "coordinator",
      std::string(kCoordinatorInbox),
      {subjects.job(kAny, kDefaultPool), subjects.job(kAny, kAny), subjects.worker_job(kAny, worker),
       subjects.worker_control(kAny, worker), subjects.rollcall(), subjects.event_logs(), subjects.events(),
       subjects.api("status"), answer_about_fleet(), "$JS.API.STREAM.CREATE." + stream, "$JS.API.STREAM.INFO." + stream,
       "$JS.API.STREAM.UPDATE." + stream, "_INBOX_worker.>", below(kOperatorInbox), below(kObserverInbox)},
      {subjects.replies(CoordinatorId(kAny)), in_group(subjects.results(), kCoordinatorsGroup), subjects.announces(),
       subjects.heartbeats(), in_group(subjects.apis(), kCoordinatorsGroup), below(kCoordinatorInbox)}};
  add_questions(user.subscribe);
  return user;
}

BusUser operator_user(const Subjects& subjects) {
  BusUser user{"operator", std::string(kOperatorInbox), {subjects.apis()}, {subjects.events(), below(kOperatorInbox)}};
  add_questions(user.publish);
  return user;
}

BusUser observer_user(const Subjects& subjects) {
  BusUser user{"observer", std::string(kObserverInbox), {}, {subjects.events(), below(kObserverInbox)}};
  add_questions(user.publish);
  return user;
}

BusUser worker_user(const Subjects& subjects, const WorkerPlace& place) {
  const WorkerId any_worker(kAny);  // its id is random
  const std::string where = place.ns + "." + place.pool;
  const std::string inbox = "_INBOX_worker." + where;
  BusUser user{
      "worker." + where,
      inbox,
      {subjects.reply(place.ns, CoordinatorId(kAny), Token(kAny)), subjects.result(place.ns),
       subjects.announce(place.ns), subjects.heartbeat(place.ns), below(kObserverInbox), below(kOperatorMicroInbox)},
      {in_group(subjects.job(place.ns, place.pool), kWorkersGroup), subjects.worker_job(place.ns, any_worker),
       subjects.worker_control(place.ns, any_worker), subjects.rollcall(), below(inbox)}};
  user.publish.push_back(subjects.api("supervise"));  // by the process that keeps its plugin running
  add_questions(user.subscribe);
  return user;
}

/// `PREFIX` of the stream `PREFIX_EVENTS`.
std::string account_name(const Subjects& subjects) {
  std::string name = subjects.event_stream();
  return name.erase(name.rfind('_'));
}

std::string list_of(const std::string& indent, const std::vector<std::string>& subjects) {
  return fmt::format("[\n{0}  \"{1}\"\n{0}]", indent, fmt::join(subjects, "\"\n" + indent + "  \""));
}

}  // namespace

Result<std::vector<BusUser>> bus_users(const Subjects& subjects, const std::set<WorkerPlace>& places) {
  std::vector<BusUser> users{coordinator_user(subjects), operator_user(subjects), observer_user(subjects)};
  for (const WorkerPlace& place : places) {
    users.push_back(worker_user(subjects, place));
    if (!valid_prefix(users.back().inbox)) {
      return Error{Errc::kInvalidRequest, "namespace " + place.ns + " and pool " + place.pool +
                                              " have over 49 letters together: no inbox can be named after them"};
    }
  }
  return users;
}

std::string accounts_conf(const Subjects& subjects, const std::vector<BusUser>& users,
                          const std::map<std::string, std::string>& keys) {
  const std::string indent(10, ' ');
  std::string text =
      fmt::format("accounts {{\n  \"{}\" {{\n    jetstream: enabled\n    users: [\n", account_name(subjects));
  for (const BusUser& user : users) {
    text += fmt::format(
        "      {{ # {}, inbox {}\n        nkey: {}\n        permissions: {{\n          publish: {}\n          "
        "subscribe: "
        "{}\n        }}\n      }}\n",
        user.name, user.inbox, keys.at(user.name), list_of(indent, user.publish), list_of(indent, user.subscribe));
  }
  return text + "    ]\n  }\n}\n";
}

}  // namespace muster::cli
