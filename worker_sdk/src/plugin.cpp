#include <algorithm>
#include <exception>
#include <stdexcept>

#include "contract.h"
#include "muster/worker.h"
#include "schema/subjects.h"
#include "waiting_call.h"

namespace muster {
namespace {

constexpr std::uint32_t kPageSize = 100;  // for who asks for no size
constexpr std::size_t kMinTypeName = 3, kMaxTypeName = 196;

/// A contradiction in a plugin's own description, which its author must see at once.
[[noreturn]] void fail(const PluginInfo& plugin, const std::string& what) {
  throw std::logic_error("plugin " + plugin.name + ": " + what);
}

void check_json_object(const PluginInfo& plugin, const JsonText& text, const std::string& what) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail(plugin, what + " is no JSON object");
}

void check_info(const PluginInfo& plugin) {
  if (plugin.name.empty()) throw std::logic_error("a plugin without name");
  if (!valid_namespace(plugin.ns)) fail(plugin, "namespace '" + plugin.ns + "' is no namespace");
  if (std::count(plugin.version.begin(), plugin.version.end(), '.') < 2) {
    fail(plugin, "version '" + plugin.version + "' is no SemVer");
  }
  check_json_object(plugin, plugin.config_schema, "config_schema");
}

void check_type(const PluginInfo& plugin, const TypeDescriptor& type) {
  const auto wrong = [&](const std::string& what) { fail(plugin, "type " + type.name + ": " + what); };
  if (!type.name.starts_with(plugin.ns + "::") || type.name.size() < kMinTypeName || type.name.size() > kMaxTypeName) {
    wrong("the name is '" + plugin.ns + "::' and more, at most 196 bytes");
  }
  check_json_object(plugin, type.schema, "schema of " + type.name);
  for (const JsonText& example : type.examples) check_json_object(plugin, example, "example of " + type.name);
  if (type.operations.empty()) wrong("no function is given");
  const auto has = [&](Operation operation) {
    return std::find(type.operations.begin(), type.operations.end(), operation) != type.operations.end();
  };
  const bool lists = has(Operation::kList), reads = has(Operation::kRead);
  const bool changes = has(Operation::kCreate) || has(Operation::kUpdate) || has(Operation::kDelete);
  if (changes && !reads) wrong("it changes objects, and there is no read");
  if (has(Operation::kStatus) && !changes) wrong("status of changes, and there are none");
  if (lists && !reads && type.list_gives == ListGives::kIds) wrong("list gives ids only, and there is no read");
  if (type.parent.empty() && !type.parent_parameters.empty()) wrong("parent_parameters without a parent");
  if (type.read_batch > kMaxReadBatch) wrong("read_batch over 1000");
}

/// No type is its own ancestor, but for one that is its own parent (directories).
void check_parents(const PluginInfo& plugin, const std::vector<TypeDescriptor>& types) {
  const auto find = [&](const std::string& name) {
    return std::find_if(types.begin(), types.end(), [&](const TypeDescriptor& type) { return type.name == name; });
  };
  for (const TypeDescriptor& type : types) {
    auto ancestor = find(type.name);
    for (std::size_t depth = 0; !ancestor->parent.empty() && ancestor->parent != ancestor->name; ++depth) {
      const auto parent = find(ancestor->parent);
      if (parent == types.end()) fail(plugin, "type " + ancestor->name + ": no type " + ancestor->parent);
      if (depth > types.size()) fail(plugin, "type " + type.name + " is its own ancestor");
      ancestor = parent;
    }
  }
}

TargetInfo target_info(const Job& job, const Json& config) {
  return {job.target.id.value, job.target.name, config};
}

/// Plugin code is called in here: whatever it throws is this call's failure and nothing else's.
/// `where`   gives the call's name, for the message
template <typename Answer, typename Where, typename Call>
Answer guarded(const Where& where, const Call& call) {
  const auto failed = [&](const std::string& what) {
    return checked(failure(Errc::kInternalFailure, where() + ": " + what));
  };
  try {
    return call();
  } catch (const ContractViolation& violation) {
    return failed(std::string("contract: ") + violation.what());
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("threw something that is no std::exception");
  }
}

/// A function of the plugin's life.
template <typename Call>
Result<void> guarded_life(const PluginInfo& plugin, const char* function, const Call& call) {
  auto done = guarded<Result<void>>([&] { return "plugin " + plugin.name + ", " + function; }, call);
  if (!done) return checked(std::move(done.error()));
  return done;
}

std::optional<ParentInfo> parent_info(const std::optional<Parent>& parent) {
  if (!parent) return std::nullopt;
  return ParentInfo{parent->type, parent->native_id, Json::parse(parent->parameters)};
}

ListRequest list_request(const Job& job, const Json& config) {
  const auto& list = std::get<ListJob>(job.operation);
  return {target_info(job, config), job.type, parent_info(list.parent), list.page_token,
          list.page_size == 0 ? kPageSize : list.page_size};
}

JobResult list_result(Result<ListPage> page, ListGives gives) {
  if (!page) return checked(std::move(page.error()));
  return checked(std::move(*page), gives);
}

ReadManyRequest read_request(const Job& job, const Json& config) {
  return {target_info(job, config), job.type, std::get<ReadJob>(job.operation).native_ids};
}

using Answers = std::vector<Result<Resource>>;

/// An error in place of all answers is that of each.
Answers each_of(Result<Answers> answers, std::size_t asked) {
  return answers ? std::move(*answers) : Answers(asked, std::move(answers.error()));
}

JobResult read_result(Answers answers, const std::vector<std::string>& native_ids) {
  if (answers.size() != native_ids.size()) {
    throw ContractViolation(std::to_string(native_ids.size()) + " ids to read, " + std::to_string(answers.size()) +
                            " answers");
  }
  ReadResult result;
  result.items.reserve(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    result.items.push_back(checked(std::move(answers[i]), native_ids[i]));
  }
  return result;
}

/// Of a call, for the messages of its failures.
std::string called(const PluginInfo& plugin, const Job& job) {
  return "plugin " + plugin.name + ", " + std::string(operation_name(job.operation)) +
         (job.type.empty() ? "" : " " + job.type) + ", job " + job.id.value;
}

/// Calls an asynchronous function with what `make_request` makes; `done` gets what `result_of` makes of its answer.
template <typename Request, typename Value, typename MakeRequest, typename ResultOf>
void begin_call(const PluginInfo& plugin, const std::shared_ptr<const Job>& job,
                const std::function<void(AsyncCall<Request, Value>)>& function, const MakeRequest& make_request,
                std::shared_ptr<AsyncContext> context, std::function<void(JobResult)> done, const ResultOf& result_of) {
  std::optional<Request> request;
  try {
    request.emplace(make_request());
  } catch (...) {
    return done(guarded<JobResult>([&] { return called(plugin, *job); }, []() -> JobResult { throw; }));
  }
  const auto take = [&plugin, job, done = std::move(done), result_of](const std::function<Result<Value>()>& give) {
    done(guarded<JobResult>([&] { return called(plugin, *job); }, [&] { return result_of(answer_of<Value>(give)); }));
  };
  const AsyncCall<Request, Value> call(std::move(*request), std::move(context), take);
  call.go_on([&] { function(call); });
}

}  // namespace

Type& Type::list(ListFunction function) {
  list_ = std::move(function);
  async_list_ = nullptr;
  return *this;
}

Type& Type::list_async(AsyncListFunction function) {
  list([function](const ListRequest& request, JobContext& context) {
    return wait_for_answer(function, request, context);
  });
  async_list_ = std::move(function);
  return *this;
}

Type& Type::read(ReadFunction function) {
  return read_many([function = std::move(function)](const ReadManyRequest& request, JobContext& context) {
    std::vector<Result<Resource>> answers;
    answers.reserve(request.native_ids.size());
    ReadRequest one{request.target, request.type, {}};
    for (const std::string& native_id : request.native_ids) {
      if (context.stop_token().stop_requested()) {  // nobody waits for the rest
        answers.emplace_back(failure(Errc::kCancelled, "stopped"));
        continue;
      }
      one.native_id = native_id;
      answers.push_back(function(one, context));
    }
    return answers;
  });
}

Type& Type::read_many(ReadManyFunction function) {
  read_ = std::move(function);
  async_read_ = nullptr;
  return *this;
}

Type& Type::read_many_async(AsyncReadManyFunction function) {
  read_many([function](const ReadManyRequest& request, JobContext& context) {
    return each_of(wait_for_answer(function, request, context), request.native_ids.size());
  });
  async_read_ = std::move(function);
  return *this;
}

Type& Type::create(CreateFunction function) {
  create_ = std::move(function);
  return *this;
}

Type& Type::update(UpdateFunction function) {
  update_ = std::move(function);
  return *this;
}

Type& Type::remove(DeleteFunction function) {
  remove_ = std::move(function);
  return *this;
}

Type& Type::status(StatusFunction function) {
  status_ = std::move(function);
  return *this;
}

Type& Plugin::type(TypeInfo info) {
  types_.push_back(std::make_unique<Type>(std::move(info)));
  return *types_.back();
}

Plugin& Plugin::inspect(InspectFunction function) {
  inspect_ = std::move(function);
  return *this;
}

Plugin& Plugin::initialize(InitializeFunction function) {
  initialize_ = std::move(function);
  return *this;
}

Plugin& Plugin::health(HealthFunction function) {
  health_ = std::move(function);
  return *this;
}

Plugin& Plugin::cleanup(CleanupFunction function) {
  cleanup_ = std::move(function);
  return *this;
}

Manifest Plugin::manifest() const {
  check_info(info_);
  Manifest manifest{.plugin = info_.name,
                    .ns = info_.ns,
                    .version = info_.version,
                    .description = info_.description,
                    .types = {},
                    .label_query = info_.label_query,
                    .filters = info_.filters,
                    .config_schema = info_.config_schema,
                    .functions = {}};
  for (const auto& type : types_) {
    const TypeInfo& info = type->info_;
    TypeDescriptor descriptor{.name = info.name,
                              .description = info.description,
                              .schema = info.schema,
                              .parent = info.parent,
                              .parent_parameters = info.parent_parameters,
                              .list_gives = info.list_gives,
                              .contained = info.contained,
                              .operations = {},
                              .label_query = info.label_query,
                              .discoverable = info.discoverable,
                              .settle = info.settle,
                              .page_size = info.page_size,
                              .read_batch = info.read_batch,
                              .examples = info.examples};
    if (type->list_) descriptor.operations.push_back(Operation::kList);
    if (type->read_) descriptor.operations.push_back(Operation::kRead);
    if (type->create_) descriptor.operations.push_back(Operation::kCreate);
    if (type->update_) descriptor.operations.push_back(Operation::kUpdate);
    if (type->remove_) descriptor.operations.push_back(Operation::kDelete);
    if (type->status_) descriptor.operations.push_back(Operation::kStatus);
    check_type(info_, descriptor);
    if (find(info.name) != type.get()) fail(info_, "type " + info.name + " is given twice");
    manifest.types.push_back(std::move(descriptor));
  }
  if (manifest.types.size() > kMaxTypes) fail(info_, "over 4096 types");
  check_parents(info_, manifest.types);
  return manifest;
}

const Type* Plugin::find(std::string_view type) const {
  const auto found = std::find_if(types_.begin(), types_.end(), [&](const auto& it) { return it->info_.name == type; });
  return found == types_.end() ? nullptr : found->get();
}

JobResult Plugin::run(const Job& job, const Json& resolved_config, JobContext& context) const {
  return guarded<JobResult>([&] { return called(info_, job); },
                            [&] { return dispatch(job, resolved_config, context); });
}

bool Plugin::is_async(const Job& job) const {
  const Type* type = find(job.type);
  if (type == nullptr) return false;
  return (std::holds_alternative<ListJob>(job.operation) && type->async_list_) ||
         (std::holds_alternative<ReadJob>(job.operation) && type->async_read_);
}

void Plugin::begin(const std::shared_ptr<const Job>& job, const Json& resolved_config,
                   std::shared_ptr<AsyncContext> context, std::function<void(JobResult)> done) const {
  const Type& type = *find(job->type);
  if (std::holds_alternative<ListJob>(job->operation)) {
    begin_call(
        info_, job, type.async_list_, [&] { return list_request(*job, resolved_config); }, std::move(context),
        std::move(done),
        [gives = type.info_.list_gives](Result<ListPage> page) { return list_result(std::move(page), gives); });
  } else {
    const auto& native_ids = std::get<ReadJob>(job->operation).native_ids;
    begin_call(
        info_, job, type.async_read_, [&] { return read_request(*job, resolved_config); }, std::move(context),
        std::move(done),
        [&native_ids](Result<Answers> answers) {
          return read_result(each_of(std::move(answers), native_ids.size()), native_ids);
        });
  }
}

Result<void> Plugin::run_initialize(InitializeContext& context) const {
  if (!initialize_) return {};
  return guarded_life(info_, "initialize", [&] { return initialize_(context); });
}

Result<void> Plugin::run_health(Context& context) const {
  if (!health_) return {};
  return guarded_life(info_, "health", [&] { return health_(context); });
}

Result<void> Plugin::run_cleanup(Context& context) const {
  if (!cleanup_) return {};
  return guarded_life(info_, "cleanup", [&] {
    cleanup_(context);
    return Result<void>();
  });
}

JobResult Plugin::dispatch(const Job& job, const Json& resolved_config, JobContext& context) const {
  if (std::holds_alternative<InspectJob>(job.operation)) {
    if (!inspect_) return InspectResult{};
    auto inspection = inspect_(InspectRequest{target_info(job, resolved_config)}, context);
    if (!inspection) return checked(std::move(inspection.error()));
    for (const std::string& name : inspection->types) {
      if (find(name) == nullptr) throw ContractViolation("a target with a type that the plugin lacks: " + name);
    }
    return checked(std::move(*inspection));
  }
  const Type* type = find(job.type);
  if (type == nullptr) return unsupported("plugin " + info_.name + " has no type " + job.type);

  if (std::holds_alternative<ListJob>(job.operation) && type->list_) {
    return list_result(type->list_(list_request(job, resolved_config), context), type->info_.list_gives);
  }
  if (const auto* read = std::get_if<ReadJob>(&job.operation); read != nullptr && type->read_) {
    return read_result(type->read_(read_request(job, resolved_config), context), read->native_ids);
  }
  if (auto changed = mutate(*type, job, resolved_config, context)) return std::move(*changed);
  return unsupported(job.type + " has no " + std::string(operation_name(job.operation)));
}

std::optional<JobResult> Plugin::mutate(const Type& type, const Job& job, const Json& resolved_config,
                                        JobContext& context) const {
  const auto answer = [&](const std::string& native_id, Result<Mutation> done) -> JobResult {
    if (!done) return checked(std::move(done.error()));
    if (done->status_ != MutationStatus::kSuccess && !type.status_) {
      throw ContractViolation("a change in progress, and the type has no status function");
    }
    if (done->gone_ &&
        (std::holds_alternative<CreateJob>(job.operation) || std::holds_alternative<UpdateJob>(job.operation))) {
      throw ContractViolation("an object that was to be there is answered as deleted");
    }
    MutationResult result{.status = done->status_,
                          .request_id = std::move(done->request_id_),
                          .native_id = std::move(done->resource_.native_id),
                          .uid = std::move(done->resource_.uid),
                          .properties = {},
                          .retry_after = done->retry_after_};
    if (result.native_id.empty()) result.native_id = native_id;
    if (!native_id.empty() && result.native_id != native_id) {
      throw ContractViolation("a change of '" + native_id + "' answered with '" + result.native_id + "'");
    }
    const bool there = done->status_ == MutationStatus::kSuccess && !done->gone_;
    if (there) result.properties = std::move(done->resource_.properties).text();
    return checked(std::move(result));
  };
  const auto object = [](const Document& document) {
    if (!document.secrets.empty()) throw ContractViolation("a document whose secrets were not filled in");
    return Json::parse(document.json);
  };
  const TargetInfo target = target_info(job, resolved_config);
  if (const auto* create = std::get_if<CreateJob>(&job.operation); create != nullptr && type.create_) {
    return answer({}, type.create_({target, job.type, object(create->properties), parent_info(create->parent),
                                    create->idempotency_key},
                                   context));
  }
  if (const auto* update = std::get_if<UpdateJob>(&job.operation); update != nullptr && type.update_) {
    return answer(update->native_id, type.update_({target, job.type, update->native_id, Json::parse(update->prior),
                                                   object(update->desired), Json::parse(update->patch),
                                                   update->idempotency_key, update->precondition},
                                                  context));
  }
  if (const auto* remove = std::get_if<DeleteJob>(&job.operation); remove != nullptr && type.remove_) {
    auto done =
        type.remove_({target, job.type, remove->native_id, remove->idempotency_key, remove->precondition}, context);
    if (!done && done.error().code == Errc::kNotFound) done = Mutation::deleted();
    return answer(remove->native_id, std::move(done));
  }
  if (const auto* status = std::get_if<StatusJob>(&job.operation); status != nullptr && type.status_) {
    return answer(status->native_id, type.status_({target, job.type, status->request_id, status->native_id}, context));
  }
  return std::nullopt;
}

}  // namespace muster
