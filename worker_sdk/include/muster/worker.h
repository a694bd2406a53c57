#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/async.h"
#include "muster/job.h"

namespace muster {

/// Members have initialisers throughout, so that designated ones may leave any of them out.
struct PluginInfo {
  std::string name{};     // `notes`: the executable is muster-plugin-notes
  std::string ns{};       // `NOTES`
  std::string version{};  // SemVer
  std::string description{};
  double max_requests_per_second = 0;               // of the namespace, for the whole fleet; 0: no limit
  std::string label_query{};                        // JSONPath of a resource's label; empty: its native id
  std::vector<MatchFilter> filters{};               // hold for every target
  JsonText config_schema = R"({"type":"object"})";  // JSON Schema of a target's config
};

/// What a plugin author says of one type; the rest of the descriptor follows from the functions that are given.
/// Field meanings and limits: schema/manifest.capnp, TypeDescriptor.
struct TypeInfo {
  std::string name{};
  JsonText schema = R"({"type":"object"})";
  std::string description{};
  std::string parent{};
  std::vector<ParentParameter> parent_parameters{};
  ListGives list_gives = ListGives::kIds;
  bool contained = true;
  bool discoverable = true;
  std::string label_query{};
  std::uint32_t page_size = 0;
  std::uint32_t read_batch = 0;
  Millis settle{0};
  std::vector<JsonText> examples{};
};

/// The functions of one type. They are called from `slots` threads at once, must not keep state between pages, and may
/// throw (INTERNAL_FAILURE of that job, nothing else).
class Type {
 public:
  using ListFunction = std::function<Result<ListPage>(const ListRequest&, JobContext&)>;
  using ReadFunction = std::function<Result<Resource>(const ReadRequest&, JobContext&)>;
  using ReadManyFunction = std::function<std::vector<Result<Resource>>(const ReadManyRequest&, JobContext&)>;
  using AsyncListFunction = std::function<void(AsyncList)>;
  using AsyncReadManyFunction = std::function<void(AsyncReadMany)>;
  using CreateFunction = std::function<Result<Mutation>(const CreateRequest&, JobContext&)>;
  using UpdateFunction = std::function<Result<Mutation>(const UpdateRequest&, JobContext&)>;
  using DeleteFunction = std::function<Result<Mutation>(const DeleteRequest&, JobContext&)>;
  using StatusFunction = std::function<Result<Mutation>(const StatusRequest&, JobContext&)>;

  explicit Type(TypeInfo info) : info_(std::move(info)) {}

  Type& list(ListFunction function);
  /// Asks for what no list has shown before it is told as gone. Without it, what is not listed is gone: also what has
  /// moved meanwhile, from where it was yet to be listed to where that had been done.
  Type& read(ReadFunction function);
  /// Instead of read(), where the provider can read many at once; answers each id, in order.
  Type& read_many(ReadManyFunction function);

  // Asynchronous functions, instead of the above: for jobs that mostly wait. They are called on the worker's loop,
  // which keeps its leases, and must return at once: nothing that blocks, and no computing beyond a fraction of a
  // millisecond, there or in what after() calls; block() is for that. A job that waits so takes up its slot, but no
  // thread. Plugin::run(), which tests call, waits for their answers, and calls there what they wait for.

  Type& list_async(AsyncListFunction function);
  Type& read_many_async(AsyncReadManyFunction function);

  // Changes need read(), which settles what is not known after a failure.

  /// Makes an object; never a second one for one idempotency key (a client token, a mark on the object, or a name that
  /// the system keeps unique: ALREADY_EXISTS then says that it is there, and the coordinator reads it).
  Type& create(CreateFunction function);
  /// Changes an object in place; its native id stays. CONFLICT where the precondition is violated.
  Type& update(UpdateFunction function);
  /// Deletes an object; one that is not there is deleted.
  Type& remove(DeleteFunction function);
  /// How a change goes that was in progress.
  Type& status(StatusFunction function);

 private:
  friend class Plugin;
  TypeInfo info_;
  ListFunction list_;
  ReadManyFunction read_;
  AsyncListFunction async_list_;  // beside list_, which then waits for it
  AsyncReadManyFunction async_read_;
  CreateFunction create_;
  UpdateFunction update_;
  DeleteFunction remove_;
  StatusFunction status_;
};

/// Everything a plugin is, without a bus or a thread: tests call it directly.
class Plugin {
 public:
  using InspectFunction = std::function<Result<Inspection>(const InspectRequest&, JobContext&)>;
  using InitializeFunction = std::function<Result<void>(InitializeContext&)>;
  using HealthFunction = std::function<Result<void>(Context&)>;
  using CleanupFunction = std::function<void(Context&)>;

  explicit Plugin(PluginInfo info) : info_(std::move(info)) {}
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() = default;

  /// Adds a type. `info.name` begins with `<ns>::`. The reference stays valid.
  Type& type(TypeInfo info);
  /// Called at the start of each run, per target. Not given: system unknown, no filters of the target's own.
  Plugin& inspect(InspectFunction function);

  // The plugin's life in a worker process. Of these three one is called at a time, on a thread of its own beside the
  // slots. What they throw counts as a failure with that message.

  /// Called once, before the worker announces itself, for what all jobs share: settings, credentials, clients. A
  /// failure, or no answer within 60 s, ends the process with status 1: its supervisor starts it again.
  Plugin& initialize(InitializeFunction function);
  /// Called every 10 s while the worker is active, beside jobs; 5 s after its begin its stop token is set. An error's
  /// message, or that there is no answer, stands in the worker's heartbeats until a later call is well: coordinators
  /// then send jobs to others of the pool as long as these have room.
  Plugin& health(HealthFunction function);
  /// Called once when the worker ends, after initialize() was well and when no other function runs any more; not at all
  /// while one does not return. 4 s after its begin the process ends without it.
  Plugin& cleanup(CleanupFunction function);

  [[nodiscard]] const PluginInfo& info() const { return info_; }
  /// What workers announce. Throws std::logic_error where descriptors contradict each other (a bug of the plugin).
  [[nodiscard]] Manifest manifest() const;
  /// Runs one job; a document of its operation has its secrets filled in. Never throws: an exception of a function, a
  /// wrong type or a broken contract comes back as Error.
  [[nodiscard]] JobResult run(const Job& job, const Json& resolved_config, JobContext& context) const;
  /// Whether begin() has it: its function is an asynchronous one.
  [[nodiscard]] bool is_async(const Job& job) const;
  /// Begins one such job. `done` gets what run() would return: once, from any thread, maybe before begin() returns.
  /// Never throws. `resolved_config` is not needed any longer when it returns, the context until `done` was called.
  void begin(const std::shared_ptr<const Job>& job, const Json& resolved_config, std::shared_ptr<AsyncContext> context,
             std::function<void(JobResult)> done) const;
  /// Run the functions of its life, as the worker does; without such a function all is well. Never throw.
  Result<void> run_initialize(InitializeContext& context) const;
  Result<void> run_health(Context& context) const;
  Result<void> run_cleanup(Context& context) const;

 private:
  friend class Lifecycle;
  [[nodiscard]] const Type* find(std::string_view type) const;
  [[nodiscard]] JobResult dispatch(const Job& job, const Json& resolved_config, JobContext& context) const;
  /// None where the type lacks the function, or the job changes nothing.
  [[nodiscard]] std::optional<JobResult> mutate(const Type& type, const Job& job, const Json& resolved_config,
                                                JobContext& context) const;

  PluginInfo info_;
  std::vector<std::unique_ptr<Type>> types_;
  InspectFunction inspect_;
  InitializeFunction initialize_;
  HealthFunction health_;
  CleanupFunction cleanup_;
};

/// How a worker reaches the bus of its fleet, for plugins whose targets are buses too. `url` may hold a password.
struct BusAccess {
  std::string url{};                            // nats://[user:password@|token@]host:port[,...] or tls://...
  std::string creds{};                          // path of a credentials file
  std::string nkey_seed{};                      // path of a file with an NKey seed
  std::string tls_ca{}, tls_cert{}, tls_key{};  // paths of PEM files
};

/// A plugin as a process: connects, announces, heartbeats, runs jobs, drains on SIGTERM.
class Worker : public Plugin {
 public:
  using Plugin::Plugin;
  /// Parses the command line (`--help` lists it), runs until drained, and returns the exit status:
  /// 0 drained, 1 rejected by the coordinator, not initialized or all slots stuck, 2 bad usage.
  /// The last thing in main: two seconds later the process ends, whatever threads of the plugin still run.
  int run(int argc, char** argv);
  using Plugin::run;
  /// Empty until run() has read the command line, which is before any function of the plugin is called.
  [[nodiscard]] const BusAccess& bus() const { return bus_; }

 private:
  BusAccess bus_;
};

}  // namespace muster
