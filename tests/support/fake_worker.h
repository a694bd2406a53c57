#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "schema/codec.h"
#include "schema/subjects.h"
#include "worker_sdk/testing/memory_bus.h"

namespace muster::test {

/// A system to look at, in memory.
struct FakeSystem {
  struct Thing {
    std::string id;
    std::string properties = "{}";
    std::string uid;
    std::string parent;  // native id; empty: a root object
  };

  std::map<std::string, std::vector<Thing>> things;  // by type
  std::size_t page = 2;                              // items a page holds
  bool list_properties = false;
  InspectResult inspection{"system-1", {}, {}};

  Thing& add(const std::string& type, Thing thing) { return things[type].emplace_back(std::move(thing)); }
  Thing& thing(const std::string& type, const std::string& id);
  void remove(const std::string& type, const std::string& id);

  /// What a plugin that keeps its contract would answer.
  [[nodiscard]] JobResult answer(const Job& job) const;
  /// Does a change, and answers it: one key makes one object, names are unique in their type.
  JobResult change(const Job& job);

  std::map<std::string, std::string> made;  // ids by idempotency key
  bool knows_keys = true;                   // false: a second create finds the name taken
  bool names_are_ids = false;
  bool holds = true;          // what lies in a thing goes with it
  bool refuses_full = false;  // while something lies in a thing, that cannot be deleted
  int next_id = 1;

 private:
  void empty_out(const std::string& id);
};

/// A manifest of types given as (name, parent).
Manifest make_manifest(const std::vector<std::pair<std::string, std::string>>& types, const std::string& ns = "NS");

/// SHA-256 of the encoded manifest, as an announcement states it.
std::string manifest_hash(const Manifest& manifest);

/// A scripted worker: keeps the protocol of the schema files, without the SDK. It answers jobs from `system` unless
/// `on_job` says otherwise.
class FakeWorker {
 public:
  struct Silent {};  // the job is lost on its way
  struct Hold {};    // accepted, and kept until release()
  using Behaviour = std::variant<std::monostate, JobResult, Busy, Hold, Silent>;

  FakeWorker(MemoryBroker& broker, const Clock& clock, std::string id, Manifest manifest, FakeSystem& system)
      : FakeWorker(broker.connect(id), clock, id, std::move(manifest), system) {}
  FakeWorker(std::unique_ptr<Bus> bus, const Clock& clock, std::string id, Manifest manifest, FakeSystem& system);

  void announce();
  /// Takes what has come, and sends a heartbeat when it is time; whether there was anything of it.
  bool turn();
  [[nodiscard]] TimePoint next_due() const;
  /// Does the changes that are held, and answers them; what else is held is answered with what was there when the job
  /// was taken, so that an observation can arrive after what has changed since.
  void release();
  void send_reply(const Job& job, const std::string& reply, decltype(JobReply::body) body,
                  const std::string& ack_to = {});
  /// A change's result on the subject where any coordinator takes it.
  void send_late(const Job& job, JobResult result);
  /// The same in two parts, of which `which` are sent: the second asks for the answer.
  void send_late_parts(const Job& job, JobResult result, const std::vector<std::uint32_t>& which);

  /// Jobs of one operation so far, in order.
  template <typename Operation>
  [[nodiscard]] std::vector<Job> asked() const {
    std::vector<Job> found;
    for (const auto& job : jobs) {
      if (std::holds_alternative<Operation>(job.operation)) found.push_back(job);
    }
    return found;
  }
  [[nodiscard]] bool accepted() const { return !answers.empty() && !answers.back().rejected; }

  Announcement announcement;      // as it announces itself; change it before announce()
  Bytes manifest_bytes;           // what it sends as its manifest
  std::size_t manifest_part = 0;  // bytes of a part of it; 0: whole
  std::function<Behaviour(const Job&)> on_job;
  std::function<Behaviour(const Job&)> on_go;  // instead of doing a change that may be begun
  bool alive = true;                           // false: neither heartbeats nor answers
  bool draining = false;
  bool persistent = false;  // announces itself each second until it is answered
  std::vector<AnnouncementReply> answers;
  std::vector<Job> jobs;
  std::vector<Control> controls;
  std::vector<ResultAck> acks;
  int rollcalls = 0;

 private:
  struct Held {
    Job job;
    std::string reply;
    bool claimed = false;           // a change that waits for its `go`
    std::optional<JobResult> seen;  // the answer of what is no change
  };
  void on_control(const Control& control, const std::string& reply);
  void take_job(const Job& job, const std::string& reply);
  [[nodiscard]] std::vector<Running> running() const;
  void heartbeat();
  void begin_change(const Job& job, const std::string& reply);

  const Clock& clock_;
  const Subjects subjects_{"muster"};
  FakeSystem& system_;
  std::unique_ptr<Bus> bus_;
  SubscriptionId rollcall_ = 0, control_ = 0, own_jobs_ = 0, group_ = 0;
  std::vector<Held> held_;
  TimePoint next_beat_;
};

}  // namespace muster::test
