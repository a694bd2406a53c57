#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/restarts.h"

namespace muster::cli {

/// Decides for one plugin which of its processes to start, to drain and to kill. Knows versions as texts and processes
/// by their ids; touches neither. Time is passed in.
///
/// A version that is new is started beside the one that serves; when all of its processes are accepted by a coordinator
/// it takes over and the others drain. While two versions drain a further one waits: nothing that has jobs is killed
/// for it, and of what is wanted meanwhile only the last is started. A process that keeps dying is quarantined: not
/// started again until the file changes or somebody asks (forgive()). Each is judged for itself; with the first of a
/// new version all of it is, with the last of the one that serves that one is.
class PluginKeeper {
 public:
  /// `count`   processes of one version, 0..256
  explicit PluginKeeper(std::size_t count) : count_(count) {}

  // What there is to run.
  void want(const std::string& version);
  /// That version is there and must not be started: what runs goes on.
  void refuse(const std::string& version, const std::string& reason);
  /// There is nothing any more: all of it drains.
  void remove();
  /// Tries again what was quarantined.
  void forgive();
  /// So many processes of one version from now on. Of more than that, those leave that have no jobs, now or at a later
  /// call.
  void scale(std::size_t count);

  struct Start {
    std::string version;
    std::size_t seat = 0;  // 0..count-1
  };
  struct Actions {
    std::vector<Start> starts;  // each is answered with started(), not_started() or postponed()
    std::vector<pid_t> drains;  // SIGTERM
    std::vector<pid_t> kills;   // SIGKILL
  };
  [[nodiscard]] Actions decide(TimePoint now);
  /// When decide() has something to do even if nothing happens.
  [[nodiscard]] TimePoint next_due() const;

  // What happens to processes.
  void started(const Start& start, pid_t pid, TimePoint now);
  void not_started(const Start& start, const std::string& why, TimePoint now);
  /// It could not be tried: this machine has no room for it now. Nothing is quarantined for that.
  void postponed(const Start& start, const std::string& why, TimePoint now);
  /// `how`   `exited with status 1`
  void ended(pid_t pid, const std::string& how, TimePoint now);
  /// A coordinator counts it among its workers.
  void accepted(pid_t pid);
  /// How many jobs the coordinator knows it to have.
  void has_jobs(pid_t pid, std::size_t jobs);
  /// A coordinator that had accepted it does not hear from it: killed and started again when that is still so 5 s
  /// later.
  void lost(pid_t pid, TimePoint now);
  /// A coordinator does not know it, though one had accepted it: that may have been another, and the process hangs. It
  /// is killed and started again when that is so for as long as one may take that nobody has accepted.
  void unknown(pid_t pid, TimePoint now);
  /// No coordinator answers who could accept them: what was started before that counts as accepted, and what an answer
  /// says after the silence holds from then on.
  void trust(TimePoint started_before);
  /// Nothing was decided for long, as whoever does stood still: nobody is late for what could not be heard.
  void stalled(TimePoint now);

  enum class State { kStarting, kRunning, kWaiting, kQuarantined, kDraining };
  struct Status {
    State state = State::kWaiting;
    std::string reason;  // of kQuarantined
    int restarts = 0;
    std::vector<pid_t> processes;  // that are to serve
    bool operator==(const Status&) const = default;
  };
  [[nodiscard]] Status status() const;
  /// Whether it waits for what a coordinator says of some of its processes.
  [[nodiscard]] bool awaits() const;
  /// Whether it may ask for that version to be started.
  [[nodiscard]] bool uses(const std::string& version) { return edition_of(version) != nullptr; }
  [[nodiscard]] bool runs(pid_t pid) const;
  /// Whether nothing runs and nothing is to.
  [[nodiscard]] bool over() const { return !serving_ && !next_ && leaving_.empty() && refusal_.empty(); }

  /// What its operator should read, since the last call.
  [[nodiscard]] std::vector<std::string> take_notices();

 private:
  struct Process {
    pid_t pid = 0;
    TimePoint started;
    TimePoint awaited;  // since when
    bool accepted = false;
    std::size_t jobs = 0;
    std::optional<TimePoint> lost{}, unknown{};  // since
    bool killed = false;                         // as it was lost, or not accepted, for too long
    bool told = false;                           // decide() has said so
  };
  struct Seat {
    Restarts restarts;
    std::optional<Process> process;
    std::string quarantine{};  // why it is not started any more; empty: it is
  };
  struct Edition {
    std::string version;
    std::vector<Seat> seats;
    std::uint64_t generation = 0;  // of its processes since the first was started; no other has it. 0: none was
    std::string quarantine;        // why none of it is started any more; empty: not so
  };
  struct Leaving {
    pid_t pid = 0;
    std::uint64_t generation = 0;
    TimePoint kill_at = TimePoint::max();
    bool told = false;
    bool killed = false;
  };

  static bool runs(const Edition& edition);
  [[nodiscard]] bool may_start(const Edition& edition) const;
  [[nodiscard]] bool may_start(const Edition& edition, const Seat& seat) const;
  std::optional<Edition>* edition_of(const std::string& version);
  template <typename Use>
  void each_process(Use use);
  /// Whether not too many others drain for it to begin.
  [[nodiscard]] bool has_room(const Edition& edition) const;
  void leave(const Edition& edition, Seat& seat);  // its process drains
  void retire(Edition& edition);                   // all of them do
  void settle(Edition& edition, Seat& seat, Millis ran, const std::string& how, TimePoint now);
  void quarantine(Edition& edition, Seat& seat, const std::string& why);
  /// Why some of it is not started any more; empty: all of it is.
  static std::string trouble(const Edition& edition);
  void take_over(TimePoint now);
  /// One that nobody accepts may hang before it could say why.
  void give_up_unaccepted(TimePoint now);

  std::size_t count_;
  std::optional<Edition> serving_;
  std::optional<Edition> next_;    // is to take over
  std::string refused_, refusal_;  // a version, and why it must not be started
  std::vector<Leaving> leaving_;   // of three generations at most: the third when a file goes while another takes over
  std::uint64_t generations_ = 0;  // so many there were
  bool said_to_wait_ = false;      // since something began to drain
  int restarts_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace muster::cli
