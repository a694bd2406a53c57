#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/commands.h"
#include "coordinator/discovery.h"
#include "coordinator/publisher.h"
#include "coordinator/supervision.h"
#include "coordinator/worker_events.h"

namespace muster {

/// Counts that could hide a loss, and what else `muster status` shows of the coordinator itself.
struct CoordinatorStatus {
  CoordinatorId id;
  WallTime started;
  BusStatus bus;
  std::uint64_t malformed = 0;        // messages that could not be decoded
  std::uint64_t unknown_workers = 0;  // heartbeats of workers that have not announced
  std::uint64_t overloads = 0;        // times that more came in for long than could be handled: nobody was judged late
  std::uint64_t store_failures = 0;
  TimePoint store_failed{};                   // the last time
  std::uint64_t rejections_left_out = 0;      // of workers, that are no event: there were too many
  std::uint64_t worker_events_left_out = 0;   // others of workers, likewise
  std::uint64_t late_successes_left_out = 0;  // that the log does not have: there were too many
};

class ApiRequest;

/// Answers muster.api.<verb>: JSON in, JSON out. Reads the store and the other parts; what changes something asks them.
/// Store errors are answered as STORE_UNAVAILABLE. Thread: loop thread only.
class Api {
 public:
  struct Parts {
    const Config& config;
    const Subjects& subjects;
    Store& store;
    Registry& registry;
    Dispatcher& dispatcher;
    Discovery& discovery;
    Commands& commands;
    Publisher& publisher;
    Supervision& supervision;
    WorkerEvents& worker_events;
    const CoordinatorStatus& status;
    const Clock& clock;
  };
  explicit Api(Parts parts) : p_(parts) {}

  /// The answer to one request; never fails: errors are answers `{"error":{"code","message","where"}}`.
  JsonText answer(std::string_view verb, std::string_view body, Effects& effects);

  /// Whoever goes through a long list asks for its next page when the one before has made its way: that is the time to
  /// make it. Holds one page; one of a store that is written to meanwhile is made anew.
  [[nodiscard]] bool may_read_ahead() const { return ahead_ && !ahead_->read; }
  void read_ahead();

 private:
  using Handler = Result<JsonText> (Api::*)(ApiRequest&, Effects&);
  struct Verb {
    std::string_view name;
    Handler handler;
  };
  static const Verb kVerbs[];

  Result<JsonText> resources(ApiRequest& request, Effects&);
  Result<JsonText> resource(ApiRequest& request, Effects&);
  Result<JsonText> counts(ApiRequest& request, Effects&);
  Result<JsonText> discover(ApiRequest& request, Effects&);
  Result<JsonText> runs(ApiRequest& request, Effects&);
  Result<JsonText> run(ApiRequest& request, Effects&);
  Result<JsonText> events(ApiRequest& request, Effects&);

  // api_fleet.cpp
  Result<JsonText> targets(ApiRequest& request, Effects&);
  Result<JsonText> accept_target(ApiRequest& request, Effects&);
  Result<JsonText> plugins(ApiRequest& request, Effects&);
  Result<JsonText> workers(ApiRequest& request, Effects&);
  Result<JsonText> pools(ApiRequest& request, Effects&);
  Result<JsonText> drain_worker(ApiRequest& request, Effects& effects);
  Result<JsonText> types(ApiRequest& request, Effects&);
  Result<JsonText> schema(ApiRequest& request, Effects&);
  Result<JsonText> status(ApiRequest& request, Effects&);
  [[nodiscard]] nlohmann::json checks();

  // api_commands.cpp
  Result<JsonText> declare(ApiRequest& request, Effects&);
  Result<JsonText> plan(ApiRequest& request, Effects&);
  Result<JsonText> apply(ApiRequest& request, Effects&);
  Result<JsonText> commands(ApiRequest& request, Effects&);
  Result<JsonText> command(ApiRequest& request, Effects&);
  Result<JsonText> cancel(ApiRequest& request, Effects& effects);
  Result<JsonText> forget(ApiRequest& request, Effects& effects);
  Result<JsonText> export_resources(ApiRequest& request, Effects&);
  Result<Draft*> draft_of(ApiRequest& request);
  [[nodiscard]] nlohmann::json command_object(const CommandRow& row) const;

  // api_supervise.cpp
  Result<JsonText> supervise(ApiRequest& request, Effects&);
  void add_quarantined(nlohmann::json& items);

  [[nodiscard]] JsonText run_object(const RunRow& row) const;

  /// The plan that parts of an answer are made of, from the first to the last: to parse it takes long.
  struct Shown {
    CommandId command;
    CommandPlan plan;
    TimePoint asked_for;  // the last time
  };

  /// A page of resources, before it is read or with its answer.
  struct ResourcePage {
    ResourceQuery query;
    std::size_t room;  // bytes of items
    bool read = false;
    std::uint64_t state{};  // of the store, then
    TimePoint at{};
    RowId next{};
    JsonText answer{};
  };
  void read(ResourcePage& page);

  Parts p_;
  std::optional<Shown> shown_;
  std::optional<ResourcePage> ahead_;
  std::uint64_t listed_state_ = 0;  // of the store, with the page of resources before
};

inline constexpr std::size_t kMaxAnswerBytes = 700 * 1024;  // of items; the rest of a megabyte is for one large item

/// `{"error":{"code","message","where"}}`
JsonText error_answer(std::string_view code, std::string_view message, std::string_view where);

/// What `resources` and `export` are asked for.
Result<ResourceQuery> resource_query(ApiRequest& request, Store& store);

/// One line of `resources -o ndjson`.
JsonText resource_line(const ResourceView& resource);

}  // namespace muster
