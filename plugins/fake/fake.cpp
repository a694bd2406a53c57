#include "fake.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "cloud.h"
#include "schemas.h"

namespace muster::fake {
namespace {

constexpr std::size_t kPageBytes = 4 << 20;  // more properties than this go into no page
constexpr Millis kRetryAfter{100};
constexpr char kPartType[] = "FAKE::Cloud::Part";

std::string thing_type(std::uint32_t type) {
  return "FAKE::Cloud::Thing" + std::to_string(type);
}

enum Disturbance : std::uint64_t { kThrottle, kFail };

/// Waits for as long as the config says that a call takes. False: stopped before.
bool take_time(Millis latency, const std::stop_token& stop) {
  if (latency > Millis{0}) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, latency, [] { return false; });
  }
  return !stop.stop_requested();
}

/// The service in front of the cloud: slow, at times overloaded or down. Calls are numbered, so that a call that failed
/// can succeed when it is made again.
class Service {
 public:
  /// What every call begins with: the cloud of the target, after the wait and the draws.
  Result<Config> enter(const TargetInfo& target, JobContext& context) {
    auto config = Config::parse(target.config);
    if (!config) return config;
    if (!take_time(Millis{config->latency_ms}, context.stop_token())) return failure(Errc::kCancelled, "cancelled");
    const auto call = mix(config->seed, calls_.fetch_add(1, std::memory_order_relaxed));
    if (unit(mix(call, kThrottle)) < config->throttle_rate) return throttled("too many calls", kRetryAfter);
    if (unit(mix(call, kFail)) < config->error_rate) return unavailable("the cloud is out of order");
    return config;
  }

 private:
  std::atomic<std::uint64_t> calls_{0};
};

/// A page of `count` resources that `make` makes of their numbers. Page tokens are the number to go on with.
template <typename Make>
Result<ListPage> paged(const Config& config, const ListRequest& request, std::uint64_t count, Make make) {
  std::uint64_t first = 0;
  const auto& token = request.page_token;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), first);
  if (!token.empty() && (error != std::errc{} || end != token.data() + token.size())) {
    return invalid_request("no page token of this plugin: " + token);
  }
  std::uint64_t size = std::min<std::uint64_t>(config.page, std::max<std::size_t>(1, kPageBytes / (config.bytes + 1)));
  if (request.page_size > 0) size = std::min<std::uint64_t>(size, request.page_size);
  const auto last = std::min(count, first + size);

  ListPage page;
  page.items.reserve(last > first ? last - first : 0);
  for (auto index = first; index < last; ++index) {
    page.items.push_back(make(index));
    // No text at all means "not given": such a resource is read.
    if (!config.list_properties) page.items.back().properties = Properties::from_canonical("");
  }
  if (last < count && first < last) page.next_page_token = std::to_string(last);
  return page;
}

bool fails(const Config& config, const std::string& type) {
  return std::find(config.fail_types.begin(), config.fail_types.end(), type) != config.fail_types.end();
}

Result<ListPage> list_things(Service& service, std::uint32_t type, const ListRequest& request, JobContext& context) {
  auto config = service.enter(request.target, context);
  if (!config) return config.error();
  if (fails(*config, request.type)) return access_denied(request.type + " is closed to this account");
  if (type >= config->types) return ListPage{};
  const Cloud cloud(*config);
  return paged(*config, request, config->resources, [&](std::uint64_t index) { return cloud.thing({type, index}); });
}

Result<ListPage> list_parts(Service& service, const ListRequest& request, JobContext& context) {
  auto config = service.enter(request.target, context);
  if (!config) return config.error();
  if (fails(*config, request.type)) return access_denied(request.type + " is closed to this account");
  if (!request.parent) return invalid_request(request.type + " is listed below a " + thing_type(0));
  const Cloud cloud(*config);
  const auto parent = cloud.find_thing(request.parent->native_id);
  if (!parent || parent->type != 0) return not_found("no thing " + request.parent->native_id);
  if (request.parent->parameters != Json{{"thing", cloud.thing_name(*parent)}}) {
    return invalid_request("the list parameter `thing` is not the name of " + request.parent->native_id);
  }
  return paged(*config, request, config->children,
               [&](std::uint64_t index) { return cloud.part(*parent, static_cast<std::uint32_t>(index)); });
}

/// Answers each id with `find(cloud, id)`, an optional resource.
template <typename Find>
std::vector<Result<Resource>> read_all(Service& service, const ReadManyRequest& request, JobContext& context,
                                       Find find) {
  const auto config = service.enter(request.target, context);
  if (!config) return {request.native_ids.size(), Result<Resource>(config.error())};
  const Cloud cloud(*config);
  std::vector<Result<Resource>> answers;
  answers.reserve(request.native_ids.size());
  for (const auto& id : request.native_ids) {
    auto found = find(cloud, id);
    answers.push_back(found ? Result<Resource>(std::move(*found)) : not_found("no " + request.type + " " + id));
  }
  return answers;
}

std::vector<Result<Resource>> read_things(Service& service, std::uint32_t type, const ReadManyRequest& request,
                                          JobContext& context) {
  return read_all(service, request, context, [&](const Cloud& cloud, const std::string& id) -> std::optional<Resource> {
    const auto thing = cloud.find_thing(id);
    if (!thing || thing->type != type) return std::nullopt;
    return cloud.thing(*thing);
  });
}

std::vector<Result<Resource>> read_parts(Service& service, const ReadManyRequest& request, JobContext& context) {
  return read_all(service, request, context, [](const Cloud& cloud, const std::string& id) -> std::optional<Resource> {
    const auto part = cloud.find_part(id);
    if (!part) return std::nullopt;
    return cloud.part(part->first, part->second);
  });
}

Result<Inspection> inspect(Service& service, const InspectRequest& request, JobContext& context) {
  const auto config = service.enter(request.target, context);
  if (!config) return config.error();
  Inspection inspection;
  inspection.system = "fake:" + std::to_string(config->seed);
  if (config->filtered_share > 0) {
    inspection.filters.push_back({{}, {TagMatch{{"Temp"}, "true"}}, FilterAction::kExclude});
  }
  for (std::uint32_t type = 0; type < config->types; ++type) inspection.types.push_back(thing_type(type));
  if (config->children > 0) inspection.types.emplace_back(kPartType);
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

void add_types(Plugin& plugin) {
  const auto service = std::make_shared<Service>();
  for (std::uint32_t type = 0; type < kMaxTypes; ++type) {
    TypeInfo thing;
    thing.name = thing_type(type);
    thing.description = "A thing of the fake cloud";
    thing.schema = kThingSchema;
    thing.list_gives = ListGives::kProperties;
    plugin.type(std::move(thing))
        .list([service, type](const auto& request, auto& context) {
          return list_things(*service, type, request, context);
        })
        .read_many([service, type](const auto& request, auto& context) {
          return read_things(*service, type, request, context);
        });
  }
  TypeInfo part;
  part.name = kPartType;
  part.description = "A part of a thing";
  part.schema = kPartSchema;
  part.parent = thing_type(0);
  part.parent_parameters = {{"thing", "name"}};
  part.list_gives = ListGives::kProperties;
  plugin.type(std::move(part))
      .list([service](const auto& request, auto& context) { return list_parts(*service, request, context); })
      .read_many([service](const auto& request, auto& context) { return read_parts(*service, request, context); });
  plugin.inspect([service](const auto& request, auto& context) { return inspect(*service, request, context); });
}

}  // namespace muster::fake
