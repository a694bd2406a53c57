#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "coordinator/effects.h"
#include "coordinator/event_log.h"
#include "coordinator/parts.h"
#include "coordinator/registry.h"
#include "coordinator/store.h"
#include "coordinator/worker_events.h"
#include "schema/subjects.h"

namespace muster {

/// Lets workers in: judges announcements, fetches each manifest once, answers. An announcement with an unknown
/// manifest waits for it; the worker asks again in the meantime. Store errors are thrown as StoreFailure.
/// Thread: loop thread only.
class Admission {
 public:
  Admission(const Subjects& subjects, CoordinatorId self, Store& store, Registry& registry, WorkerEvents& events,
            WorkerEvents& rejections, Random& random, const Clock& clock, spdlog::logger& log)
      : subjects_(subjects),
        self_(std::move(self)),
        store_(store),
        registry_(registry),
        events_(events),
        rejections_(rejections),
        random_(random),
        clock_(clock),
        log_(log) {}

  /// Manifests of former times.
  void load();
  /// Returns whether the worker is in.
  bool on_announcement(const Announcement& announcement, const std::string& reply, TimePoint now, Effects& effects);
  /// The namespace of the worker that was asked for a manifest with this token; none: it is not one of ours.
  [[nodiscard]] std::optional<std::string> asked_namespace(const Token& token) const;
  /// The answer to a token of ours: a manifest, or a part of one.
  void on_reply(const JobReply& reply, TimePoint now, Effects& effects);
  /// Gives up manifests that nobody sends. Who still waits for one announces itself again.
  void expire(TimePoint now);

 private:
  struct Waiting {
    Announcement announcement;
    std::string reply;
    [[nodiscard]] std::size_t bytes() const;
  };
  /// Who is asked again is asked with the same token: on a slow link each answer comes after the next question.
  struct Asked {
    WorkerName worker;
    Token token;
    PartAssembler parts;
  };
  struct Fetch {
    std::string ns;            // of whoever began it
    std::vector<Asked> asked;  // bounded; the newest last
    TimePoint asked_at;
    std::map<WorkerName, Waiting> waiting;
  };
  using Fetches = std::map<std::string, Fetch>;  // by hash
  /// What waits, whatever it waits for.
  struct Queue {
    std::size_t workers = 0;
    std::size_t bytes = 0;
  };

  /// Takes it in among those that wait for its manifest; false: there is no room.
  bool wait(const Announcement& announcement, const std::string& reply, TimePoint now);
  /// Makes room for one more fetch of `ns`, at the cost of the namespace that has most of them; false: there is none.
  bool make_room(const std::string& ns, TimePoint now);
  /// Drops the parts of the namespace that holds most of them.
  void drop_most_parts();
  void waits_no_more(const Waiting& waiting);
  Fetches::iterator give_up(Fetches::iterator fetch);
  void ask(const std::string& hash, Fetch& fetch, TimePoint now, Effects& effects);
  /// The manifest that an answer is, or that it completes.
  std::optional<Bytes> manifest_in(const JobReply& reply, Asked& asked);
  void learn(const std::string& hash, Manifest manifest);
  void on_manifest(const std::string& hash, const Asked& from, const Bytes& encoded, TimePoint now, Effects& effects);
  /// Somebody who was asked for it has sent another.
  void on_wrong_manifest(const std::string& hash, const Asked& from, TimePoint now, Effects& effects);
  void accept(const Announcement& announcement, const std::string& reply, TimePoint now, Effects& effects);
  void reject(const Announcement& announcement, const std::string& reply, const Rejection& why, TimePoint now,
              Effects& effects);
  void tell(const Announcement& announcement, const Rejection& why, TimePoint now);
  void answer(const std::string& reply, std::optional<Rejection> rejected, Effects& effects) const;

  const Subjects& subjects_;
  CoordinatorId self_;
  Store& store_;
  Registry& registry_;
  WorkerEvents& events_;
  WorkerEvents& rejections_;
  Random& random_;
  const Clock& clock_;
  spdlog::logger& log_;
  Fetches fetches_;
  std::map<std::string, Queue, std::less<>> queues_;  // by namespace
  Queue all_waiting_;
  std::map<std::string, std::size_t> begun_;        // fetches, by namespace
  std::map<WorkerName, Rejection> last_rejection_;  // an event only when it is news; bounded
};

}  // namespace muster
