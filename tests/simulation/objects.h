#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/worker.h"
#include "simulation/weather.h"
#include "unit/sdk_memory_journal.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

inline constexpr std::string_view kNotEmpty = " is not empty";
inline constexpr Millis kSettle{2000};  // of types whose objects are seen late

/// The process that calls: what dies with it.
struct Host {
  std::shared_ptr<testing::MemoryDisk> disk;
  Token token;        // of the job that is run now
  bool dies = false;  // set by a call: the process ends when it returns, and nobody hears of the answer
  const Clock* clock = nullptr;
};

/// What goes wrong with changes. Shares of calls, each in thousandths.
struct ChangeFaults {
  int before = 0;    // fail without having acted, to be tried again
  int after = 0;     // act, and answer that it is not known
  int terminal = 0;  // fail for good without having acted
  int crash = 0;     // take their worker with them: before they act, after it, or when the result is on disk
  int progress = 0;  // go on for a while, and are asked for by Status; some of them fail in the end
};

/// The part of the cloud that commands change. SIM::Object: a key makes one object, names are free, creates and updates
/// may be in progress. SIM::Named: the name is the native id, and keys are not known. SIM::Child: as SIM::Object, lies
/// in one, and goes with it. SIM::Nest: lies in another or in nothing. All keep books of every change that was made,
/// whatever became of its answer, and say at once when one must not have been.
class Objects {
 public:
  struct Object {
    Json properties;
    std::string uid;
    std::string parent;  // native id of what a child or a nest lies in
    std::string key;     // of the create that made it
    TimePoint ready_at;  // not there before
    TimePoint shows_at;  // not seen before, though it is there
    std::string note;    // write-only
  };
  /// A change that was made.
  struct Entry {
    enum class Act : std::uint8_t { kCreate, kUpdate, kDelete };
    Act act;
    std::string key, type, id, name;
    std::vector<std::string> users;  // of what was deleted: ids of objects that referred to it, or lay in it
  };
  using Things = std::map<std::string, Object>;

  Objects(std::uint64_t seed, const Clock& clock);
  ~Objects();

  /// From now on there are SIM::Child, too.
  void add_children() { types_["SIM::Child"]; }
  /// And SIM::Nest.
  void add_nests() { types_["SIM::Nest"]; }
  /// What is made or changed from now on has a text, which nobody declares.
  void add_texts() { text_ = std::string(700, '.'); }
  void hide_uids() { has_uids_ = false; }
  /// What is made from now on is seen after `most` at the latest, within the settle time that its type states.
  void show_late(Millis most) { latest_ = most; }
  /// How long it proves nothing that something does not show.
  [[nodiscard]] Millis settle() const { return latest_ > Millis{0} ? kSettle : Millis{0}; }
  /// Nothing that something lies in can be deleted from now on; else that goes with it.
  void be_strict() { strict_ = true; }
  void serve(Plugin& plugin, Random& random, const Weather& weather, Host& host);
  void set_faults(const ChangeFaults& faults) { faults_ = faults; }
  /// Asked before each change is made; returns what speaks against it.
  std::function<std::optional<std::string>(const std::string& key, const Host& host)> on_change;

  /// Asked for each thing that goes with what it lies in; returns what speaks against it.
  std::function<std::optional<std::string>(const std::string& key, const std::string& type, const std::string& id)>
      on_taken_along;

  /// Whether the fleet knows that another has been made in the place of an object, and has yet to delete it, or has
  /// let go of it: where that was not come to, one more may be made beside them.
  std::function<bool(const std::string& type, const std::string& id)> may_have_twin = [](const auto&, const auto&) {
    return false;
  };

  /// Somebody tells things about them that are not so: a resource may be made twice.
  void may_be_doubled(bool lied_to) { lied_to_ = lied_to; }

  /// Changes or removes something behind everybody's back.
  void edit();
  void erase(const std::string& type, const std::string& id);  // with what lies in it
  /// Brings something back that was removed, under its id; what has a name may be another thing then.
  void revive();
  /// What lies in something, near or far: types and ids.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> inside(const std::string& type,
                                                                        const std::string& id) const;
  [[nodiscard]] bool was_revived(const std::string& id) const { return revived_.contains(id); }

  [[nodiscard]] const std::map<std::string, Things>& types() const { return types_; }
  [[nodiscard]] const std::vector<Entry>& books() const { return books_; }
  [[nodiscard]] bool ever(const std::string& type, const std::string& id) const { return ever_.contains({type, id}); }
  /// How often a thing was removed: it cannot have vanished more often.
  [[nodiscard]] std::size_t removals(const std::string& type, const std::string& id) const;
  [[nodiscard]] std::size_t creations(const std::string& type, const std::string& id) const;
  [[nodiscard]] bool seen(const Object& object) const { return there(object) && object.shows_at <= clock_.now(); }
  /// Nothing that has begun is still to show, whether anybody asks for it or not.
  [[nodiscard]] bool at_rest() const;
  /// The first thing that must not have happened.
  [[nodiscard]] const std::optional<std::string>& fault() const { return fault_; }

 private:
  struct Request {
    std::string type, id;
    TimePoint ready_at;
    std::optional<Error> fails;
  };

  [[nodiscard]] bool there(const Object& object) const { return object.ready_at <= clock_.now(); }
  [[nodiscard]] Result<Mutation> create(const CreateRequest& request, Host& host);
  [[nodiscard]] Result<Mutation> update(const UpdateRequest& request, Host& host);
  [[nodiscard]] Result<Mutation> remove(const DeleteRequest& request, Host& host);
  [[nodiscard]] Result<Mutation> status(const StatusRequest& request);
  [[nodiscard]] std::optional<Error> trouble(Host& host);
  /// The answer of what was done, if it is one.
  [[nodiscard]] Result<Mutation> answer(Mutation done, Host& host);
  /// Takes what is write-only out of properties.
  std::string take_note(Json& properties);
  /// What the cloud itself gives a thing.
  void add_own(Json& properties, const std::string& id) const;
  void die(Host& host, bool kept);
  void book(Entry entry, const Host& host);
  void count_removal(const std::string& type, const std::string& id) { ++removals_[{type, id}]; }
  [[nodiscard]] Resource resource(const std::string& id, const Object& object) const;
  [[nodiscard]] bool happens(int thousandths) { return random_->below(1000) < static_cast<std::uint64_t>(thousandths); }
  [[nodiscard]] Mutation begin(const std::string& type, const std::string& id, std::optional<Error> fails);

  const Clock& clock_;
  std::unique_ptr<Random> random_;
  ChangeFaults faults_;
  std::map<std::string, Things> types_{{"SIM::Named", {}}, {"SIM::Object", {}}};
  std::map<std::string, std::string> keys_;     // id by key
  std::map<std::string, std::string> refused_;  // by key: the request that fails in the end
  std::map<std::string, Resource> made_;        // what was answered for a key
  std::map<std::string, Request> requests_;
  std::vector<Entry> books_;
  std::map<std::string, Entry::Act> acts_;  // by key
  std::set<std::pair<std::string, std::string>> ever_;
  std::set<std::string> undeleted_;  // ids that were to be deleted, in vain: another may be made beside them
  std::map<std::pair<std::string, std::string>, Object> dead_;  // by type and id
  std::set<std::string> revived_;                               // ids
  bool lied_to_ = false, has_uids_ = true, strict_ = false;
  Millis latest_{0};
  std::map<std::pair<std::string, std::string>, std::size_t> removals_;  // by type and id
  std::size_t serial_ = 0;
  std::string text_;
  std::optional<std::string> fault_;
};

}  // namespace muster::sim
