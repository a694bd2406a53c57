#pragma once

#include <deque>
#include <string>

#include <spdlog/fwd.h>
#include <nlohmann/json_fwd.hpp>

#include "coordinator/config.h"
#include "coordinator/effects.h"
#include "coordinator/event_log.h"
#include "coordinator/store.h"
#include "schema/subjects.h"

namespace muster {

/// Carries committed events from the store's outbox to the bus, in order: to the JetStream stream that republishes
/// them, or, where there is no JetStream, straight to their subjects. Consecutive events of one subject travel
/// together, at most 64 KiB. The stream takes a batch only right behind the one before: what is lost on its way is not
/// overtaken, and what a former process has sent does not come twice. A stream that is away for a while is waited for.
/// Store errors are thrown as StoreFailure. Thread: loop thread only.
class Publisher {
 public:
  /// `inbox`   subject prefix for acknowledgements; the owner subscribes to `<inbox>.>` and calls on_reply()
  Publisher(const Config& config, const Subjects& subjects, Store& store, EventLog& events, std::string inbox,
            spdlog::logger& log);

  /// Reads where publication stands and asks for the stream.
  void start(TimePoint now, Effects& effects);
  /// An answer on the inbox, less its prefix.
  void on_reply(std::string_view what, const Message& message, TimePoint now);
  /// To be called when everything is committed and there is a connection; sends what the window lets through.
  /// `max_payload`   of a message, as the server states it
  void pump(TimePoint now, Effects& effects, std::size_t max_payload);
  /// To be called before a commit: notes in the store what is published.
  void note_published();
  /// Everything on its way is sent again: after a disconnection.
  void reconnect(TimePoint now);
  [[nodiscard]] TimePoint next_due() const;

  [[nodiscard]] bool streaming() const { return mode_ == Mode::kStream; }
  [[nodiscard]] std::uint64_t published() const { return published_; }
  [[nodiscard]] std::uint64_t resent() const { return resent_; }

 private:
  enum class Mode : std::uint8_t { kAsking, kStream, kCore };
  struct Batch {
    std::uint64_t first = 0, last = 0;
    TimePoint sent;
    bool acknowledged = false;
    bool refused = false;   // as not being right behind the one before
    bool rejected = false;  // for another reason, whatever the stream says of it then
    Outgoing message;       // with the id of the batch before in its last header, if that is known
  };

  void ask_for_stream(TimePoint now, Effects& effects);
  void on_stream_reply(std::string_view number, const Message& message, TimePoint now);
  void on_not_behind(Batch& batch, const std::string& why);
  [[nodiscard]] bool may_be_last(std::uint64_t sequence);
  void on_stream_found();
  void on_stream_refused(const Message& message, const nlohmann::json& answer, TimePoint now);
  void go_without_stream(std::string_view why, TimePoint now);
  void wait_for_stream(TimePoint now);
  void send_again(TimePoint now, Effects& effects);
  /// `most`   bytes of its body; one event that is larger goes without its data
  Batch make_batch(const std::deque<EventRow>& events, std::size_t& next, std::size_t most);

  const Config& config_;
  const Subjects& subjects_;
  Store& store_;
  EventLog& events_;
  std::string inbox_;
  spdlog::logger& log_;

  Mode mode_ = Mode::kAsking;
  /// What is asked of JetStream. A stream of that name that has another configuration is looked at before it is
  /// changed: prefixes that differ in case, or in `.` and `_`, have one name.
  enum class Ask : std::uint8_t { kCreate, kInfo, kUpdate };
  Ask ask_ = Ask::kCreate;
  TimePoint ask_again_ = TimePoint::max();
  TimePoint go_on_at_ = TimePoint::max();  // with what goes out plainly
  std::uint64_t question_ = 1;             // the one that has no answer yet
  TimePoint asked_;
  TimePoint waits_since_;                       // for the stream, while asking
  TimePoint untaken_since_ = TimePoint::max();  // what the stream does not take; until it has taken something
  bool had_stream_ = false;                     // in this process
  std::string last_batch_;                      // id of the last batch in the stream once it has all that was sent
  bool last_known_ = false;                     // else nothing has it, and the refusal of one batch says what is last
  std::deque<Batch> window_;                    // sent, in order; the front is the oldest without acknowledgement
  std::uint64_t sent_ = 0;                      // last sequence that was sent
  std::uint64_t published_ = 0;                 // last sequence known to be published
  std::uint64_t noted_ = 0;                     // the same, as the store has it
  std::uint64_t resent_ = 0;
};

}  // namespace muster
