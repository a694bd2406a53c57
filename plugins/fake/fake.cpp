#include "fake.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <string_view>

#include "cloud.h"
#include "schemas.h"
#include "writes.h"

namespace muster::fake {
namespace {

constexpr std::size_t kPageBytes = 4 << 20;     // more properties than this go into no page
constexpr std::size_t kQuickBytes = 256 << 10;  // more properties than these are made and answered in a thread
constexpr std::size_t kLeastBytes = 200;        // that properties have anyway
constexpr char kWrittenToken = 'w';             // page tokens of the things that were written begin with it

enum Draw : std::uint64_t { kLatency, kThrottle, kFail };

// What a call asks, as a number: the same for the job that repeats it.
std::uint64_t question(std::uint64_t seed, const ListRequest& request) {
  const auto page = mix_text(mix_text(mix_text(seed, "list"), request.type), request.page_token);
  return request.parent ? mix_text(page, request.parent->native_id) : page;
}

std::uint64_t question(std::uint64_t seed, const ReadManyRequest& request) {
  auto hash = mix_text(mix_text(seed, "read"), request.type);
  for (const auto& id : request.native_ids) hash = mix_text(hash, id);
  return hash;
}

std::uint64_t question(std::uint64_t seed, const InspectRequest&) {
  return mix_text(seed, "inspect");
}

std::uint64_t question(std::uint64_t seed, const CreateRequest& request) {
  return mix_text(mix_text(mix_text(seed, "create"), request.type), request.idempotency_key);
}

std::uint64_t question(std::uint64_t seed, const UpdateRequest& request) {
  return mix_text(mix_text(mix_text(seed, "update"), request.native_id), request.idempotency_key);
}

std::uint64_t question(std::uint64_t seed, const DeleteRequest& request) {
  return mix_text(mix_text(mix_text(seed, "delete"), request.native_id), request.idempotency_key);
}

std::uint64_t question(std::uint64_t seed, const StatusRequest& request) {
  return mix_text(mix_text(seed, "status"), request.request_id);
}

using SharedConfig = std::shared_ptr<const Config>;

/// The config of a target; it is parsed where it is another one than at the last call of this thread.
Result<SharedConfig> config_of(const Json& source) {
  thread_local std::optional<std::pair<Json, SharedConfig>> last;
  if (last && last->first == source) return last->second;
  auto config = Config::parse(source);
  if (!config) return config.error();
  last.emplace(source, std::make_shared<const Config>(std::move(*config)));
  return last->second;
}

// What the answer takes at most, in bytes of properties.

std::size_t bytes_of(const ListRequest& request, const Config& config) {
  const auto size = request.page_size > 0 ? std::min(config.page, request.page_size) : config.page;
  return size * std::max<std::size_t>(config.bytes, kLeastBytes);
}

std::size_t bytes_of(const ReadManyRequest& request, const Config& config) {
  return request.native_ids.size() * std::max<std::size_t>(config.bytes, kLeastBytes);
}

/// The service in front of the cloud: slow, at times overloaded or down. The seed and the question say how long a call
/// takes; whether it fails also depends on how often this process was asked, so that it can succeed when it is
/// repeated.
class Service {
 public:
  explicit Service(WallClock clock) : clock_(std::move(clock)) {}

  [[nodiscard]] std::int64_t now() const { return clock_(); }

  /// What every call begins with: the config of the target, after the wait and the draws.
  template <typename Request>
  Result<SharedConfig> enter(const Request& request, JobContext& context) {
    auto config = config_of(request.target.config);
    if (!config) return config;
    const auto asked = question((*config)->seed, request);
    take_time(time_of(**config, asked), context.stop_token());
    if (auto failed = refused(**config, asked, context)) return std::move(*failed);
    return config;
  }

  /// Answers with what `ask(config, call)` gives, once the call's time is over. Of a cloud that is only computed it is
  /// made meanwhile: the time that a call takes is that until its answer is there. What a state holds is looked at in
  /// the end.
  template <typename Call, typename Ask>
  void answer(const Call& call, Ask ask) {
    const auto found = config_of(call.request().target.config);
    if (!found) return call.answer(found.error());
    const bool large = bytes_of(call.request(), **found) > kQuickBytes;
    const auto begin = [this, call, ask, large, config = *found] {
      using Answer = decltype(ask(*config, call));
      const auto made = config->state.empty() ? std::make_shared<Answer>(ask(*config, call)) : nullptr;
      const auto asked = question(config->seed, call.request());
      const auto end = [this, call, ask, large, config, made, asked] {
        if (auto failed = refused(*config, asked, call.context())) return call.answer(std::move(*failed));
        if (made && !large) return call.answer(std::move(*made));
        call.block([call, ask, config, made] { call.answer(made ? std::move(*made) : ask(*config, call)); });
      };
      const auto time = time_of(*config, asked);
      if (time.count() > 0) return call.after(time, end);
      end();
    };
    if (large) return call.block(begin);
    begin();
  }

 private:
  [[nodiscard]] static std::chrono::microseconds time_of(const Config& config, std::uint64_t asked) {
    return config.latency_ms.of(mix(asked, kLatency));
  }
  /// After the wait: whether the call was stopped meanwhile, or is drawn to fail.
  std::optional<Error> refused(const Config& config, std::uint64_t asked, JobContext& context) {
    if (context.stop_token().stop_requested()) return failure(Errc::kCancelled, "cancelled");
    const auto times = times_asked_[asked % times_asked_.size()].fetch_add(1, std::memory_order_relaxed);
    const auto call = mix(asked, times);
    if (unit(mix(call, kThrottle)) < config.throttle_rate) return throttled("too many calls", kRetryAfter);
    if (unit(mix(call, kFail)) < config.error_rate) return unavailable("the cloud is out of order");
    return std::nullopt;
  }

  WallClock clock_;
  std::array<std::atomic<std::uint64_t>, 4096> times_asked_{};  // by hash; those that share a place share the count
};

/// What a listing that comes page by page goes through: numbers of computed resources, then rows of written ones.
class Lister {
 public:
  /// `parent`   native id; empty for things
  Lister(const Config& config, const ListRequest& request, std::optional<State>& state, std::int64_t now,
         std::string_view parent)
      : config_(config), request_(request), state_(state), now_(now), parent_(parent) {}

  /// A page of the resources that `make` makes of the numbers from `first` to `end` - 1, and what was written.
  template <typename Make>
  Result<ListPage> page(std::uint64_t first, std::uint64_t end, Make make) {
    std::string_view token = request_.page_token;
    const bool computed = token.empty() || token.front() != kWrittenToken;
    if (!computed) token.remove_prefix(1);
    std::uint64_t next = 0;
    const auto [rest, error] = std::from_chars(token.data(), token.data() + token.size(), next);
    if (!token.empty() && (error != std::errc{} || rest != token.data() + token.size())) {
      return invalid_request("no page token of this plugin: " + request_.page_token);
    }
    std::uint64_t size =
        std::min<std::uint64_t>(config_.page, std::max<std::size_t>(1, kPageBytes / (config_.bytes + 1)));
    if (request_.page_size > 0) size = std::min<std::uint64_t>(size, request_.page_size);

    ListPage page;
    std::uint64_t taken = 0;
    if (computed) {
      next = std::max(next, first);
      taken = next < end ? std::min(size, end - next) : 0;
      page.items.reserve(taken);
      for (const auto last = next + taken; next < last; ++next) page.items.push_back(make(next));
      if (state_ && state_->overlays(request_.type)) put_overlays(page.items);
    }
    if (computed && next < end) {
      page.next_page_token = std::to_string(next);
    } else if (state_) {
      add_written(page, computed ? 0 : static_cast<std::int64_t>(next), size - taken);
    }
    // No text at all means "not given": such a resource is read.
    if (!config_.list_properties) {
      for (auto& item : page.items) item.properties = Properties::from_canonical("");
    }
    return page;
  }

 private:
  /// Computed ones that somebody changed or deleted.
  void put_overlays(std::vector<Resource>& items) {
    std::erase_if(items, [&](Resource& item) {
      const auto object = state_->find(request_.type, item.native_id);
      if (object) item.properties = Properties::from_canonical(object->properties);
      return object && !object->readable(now_);
    });
  }

  void add_written(ListPage& page, std::int64_t after, std::uint64_t room) {
    const auto objects = state_->list(now_, after, request_.type, parent_, room + 1);
    std::size_t bytes = 0;
    for (const auto& object : objects) {
      if (room-- == 0 || bytes > kPageBytes) {
        page.next_page_token = kWrittenToken + std::to_string(after);
        return;
      }
      page.items.push_back(object.resource());
      bytes += object.properties.size();
      after = object.seq;
    }
  }

  const Config& config_;
  const ListRequest& request_;
  std::optional<State>& state_;
  std::int64_t now_;
  std::string_view parent_;
};

/// The state of a cloud that has one.
Result<std::optional<State>> open_state(const Config& config, const TargetInfo& target) {
  if (config.state.empty()) return std::optional<State>();
  auto state = State::open(config.state, target);
  if (!state) return state.error();
  return std::optional(std::move(*state));
}

bool fails(const Config& config, const std::string& type) {
  return std::find(config.fail_types.begin(), config.fail_types.end(), type) != config.fail_types.end();
}

Result<ListPage> list_things(const Service& service, const Config& config, std::uint32_t type,
                             const ListRequest& request) {
  if (fails(config, request.type)) return access_denied(request.type + " is closed to this account");
  if (type >= config.types) return ListPage{};
  auto state = open_state(config, request.target);
  if (!state) return state.error();
  const Cloud cloud(config);
  return Lister(config, request, *state, service.now(), "").page(cloud.first(), cloud.end(), [&](std::uint64_t index) {
    return cloud.thing({type, index});
  });
}

Result<ListPage> list_parts(const Service& service, const Config& config, const ListRequest& request) {
  if (fails(config, request.type)) return access_denied(request.type + " is closed to this account");
  if (!request.parent) return invalid_request(request.type + " is listed below a " + thing_type(0));
  auto state = open_state(config, request.target);
  if (!state) return state.error();
  const Cloud cloud(config);
  const auto& id = request.parent->native_id;
  const auto parent = cloud.find_thing(id);
  const auto written = *state ? (*state)->find(thing_type(0), id) : std::nullopt;
  const bool computed = parent && parent->type == 0;
  const bool there = written ? written->readable(service.now()) && (computed || !written->computed) : computed;
  if (!there) return not_found("no thing " + id);
  if (!written && request.parent->parameters != Json{{"thing", cloud.thing_name(*parent)}}) {
    return invalid_request("the list parameter `thing` is not the name of " + id);
  }
  return Lister(config, request, *state, service.now(), id)
      .page(0, computed ? config.children : 0,
            [&](std::uint64_t index) { return cloud.part(*parent, static_cast<std::uint32_t>(index)); });
}

using Answers = std::vector<Result<Resource>>;

Result<Answers> read(const Service& service, const Config& config, const AsyncReadMany& reads) {
  const auto& request = reads.request();
  auto state = open_state(config, request.target);
  if (!state) return state.error();
  std::optional<Call> call;  // reads that go well anyway are not worth a line in the log
  if (config.fail.contains("read")) {
    const auto key = "read-" + std::to_string(question(config.seed, request));
    const auto first = request.native_ids.empty() ? std::string() : request.native_ids.front();
    const CallInfo info{"read", request.type, first, {}, key};
    call.emplace(**state, config, service.now(), info, reads.context().stop_token());
    if (const auto error = call->before()) return *error;
    call->done("done", first);
  }
  const Cloud cloud(config);
  Answers answers;
  answers.reserve(request.native_ids.size());
  for (const auto& id : request.native_ids) {
    std::optional<Resource> found;
    if (!*state) {
      found = cloud.find(request.type, id);
    } else if (const auto object = find(**state, cloud, request.type, id); object && object->readable(service.now())) {
      found = object->resource();
    }
    answers.push_back(found ? Result<Resource>(std::move(*found)) : not_found("no " + request.type + " " + id));
  }
  if (call) {
    if (const auto error = call->after()) return *error;
  }
  return answers;
}

/// Every change: `act(config, now, request, context)` behind the service, for clouds that have a state.
template <typename Request, typename Act>
Result<Mutation> change(Service& service, const Request& request, JobContext& context, Act act) {
  const auto config = service.enter(request, context);
  if (!config) return config.error();
  if ((*config)->state.empty()) {
    return unsupported("this cloud is only computed; changes need config.state, a path that its workers share");
  }
  for (std::uint32_t type = (*config)->types; type < kMaxTypes; ++type) {
    if (request.type == thing_type(type)) return invalid_request("config.types: this cloud has no " + request.type);
  }
  return act(**config, service.now(), request, context);
}

void add_changes(Type& type, const std::shared_ptr<Service>& service) {
  type.create([service](const CreateRequest& request, JobContext& context) {
        return change(*service, request, context, create);
      })
      .update([service](const UpdateRequest& request, JobContext& context) {
        return change(*service, request, context, update);
      })
      .remove([service](const DeleteRequest& request, JobContext& context) {
        return change(*service, request, context, fake::remove);
      })
      .status([service](const StatusRequest& request, JobContext& context) {
        return change(*service, request, context, status);
      });
}

/// A part has what a thing has, and its thing.
JsonText part_schema() {
  auto schema = Json::parse(kThingSchema);
  schema["properties"]["thing"] = {
      {"type", "string"},
      {"description", "The thing that it is a part of: its native id, or the name of a computed one"},
      {"x-muster-create-only", true}};
  schema["required"].push_back("thing");
  schema["x-muster-identity"] = {"thing", "name"};
  return schema.dump();
}

Result<Inspection> inspect(Service& service, const InspectRequest& request, JobContext& context) {
  const auto entered = service.enter(request, context);
  if (!entered) return entered.error();
  const auto& config = *entered;
  Inspection inspection;
  inspection.system = "fake:" + std::to_string(config->seed);
  if (config->filtered_share > 0) {
    inspection.filters.push_back({{}, {TagMatch{{"Temp"}, "true"}}, FilterAction::kExclude});
  }
  for (std::uint32_t type = 0; type < config->types; ++type) inspection.types.push_back(thing_type(type));
  if (config->children > 0 || !config->state.empty()) inspection.types.emplace_back(kPartType);
  return inspection;
}

}  // namespace

PluginInfo plugin_info() {
  PluginInfo info;
  info.name = "fake";
  info.ns = "FAKE";
  info.version = "0.1.0";
  info.description = "A cloud that is computed from a seed: for tests, demonstrations and load";
  info.label_query = "$.name";
  info.config_schema = kConfigSchema;
  return info;
}

std::int64_t wall_clock() {
  return std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void add_types(Plugin& plugin, WallClock clock) {
  const auto service = std::make_shared<Service>(std::move(clock));
  const auto read_many = [service](const AsyncReadMany& call) {
    service->answer(
        call, [service](const Config& config, const AsyncReadMany& reads) { return read(*service, config, reads); });
  };
  for (std::uint32_t number = 0; number < kMaxTypes; ++number) {
    TypeInfo thing;
    thing.name = thing_type(number);
    thing.description = "A thing of the fake cloud";
    thing.schema = kThingSchema;
    thing.list_gives = ListGives::kProperties;
    thing.settle = Millis{kSettleMs};
    thing.examples = {R"({"name":"web","size":3,"Tags":[{"Key":"Env","Value":"dev"}]})"};
    auto& type = plugin.type(std::move(thing))
                     .list_async([service, number](const AsyncList& call) {
                       service->answer(call, [service, number](const Config& config, const AsyncList& list) {
                         return list_things(*service, config, number, list.request());
                       });
                     })
                     .read_many_async(read_many);
    add_changes(type, service);
  }
  TypeInfo part;
  part.name = kPartType;
  part.description = "A part of a thing";
  part.schema = part_schema();
  part.parent = thing_type(0);
  part.parent_parameters = {{"thing", "name"}};
  part.list_gives = ListGives::kProperties;
  part.settle = Millis{kSettleMs};
  part.examples = {R"({"name":"disk","thing":"thing0-00000042","size":3})"};
  auto& type = plugin.type(std::move(part))
                   .list_async([service](const AsyncList& call) {
                     service->answer(call, [service](const Config& config, const AsyncList& list) {
                       return list_parts(*service, config, list.request());
                     });
                   })
                   .read_many_async(read_many);
  add_changes(type, service);
  plugin.inspect([service](const auto& request, auto& context) { return inspect(*service, request, context); });
}

}  // namespace muster::fake
