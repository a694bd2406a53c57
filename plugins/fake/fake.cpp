#include "fake.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>

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

enum Draw : std::uint64_t { kLatency, kThrottle, kFail };

/// Waits for as long as the call takes. False: stopped before.
bool take_time(std::chrono::microseconds latency, const std::stop_token& stop) {
  if (latency.count() > 0) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, latency, [] { return false; });
  }
  return !stop.stop_requested();
}

/// FNV-1a: the same in every process.
std::uint64_t mix_text(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mix(hash, text.size());
}

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

/// The service in front of the cloud: slow, at times overloaded or down. The seed and the question say how long a call
/// takes; whether it fails also depends on how often this process was asked, so that it can succeed when it is
/// repeated.
class Service {
 public:
  /// What every call begins with: the config of the target, after the wait and the draws.
  template <typename Request>
  Result<Config> enter(const Request& request, JobContext& context) {
    auto config = Config::parse(request.target.config);
    if (!config) return config;
    const auto asked = question(config->seed, request);
    if (!take_time(config->latency_ms.of(mix(asked, kLatency)), context.stop_token())) {
      return failure(Errc::kCancelled, "cancelled");
    }
    const auto times = times_asked_[asked % times_asked_.size()].fetch_add(1, std::memory_order_relaxed);
    const auto call = mix(asked, times);
    if (unit(mix(call, kThrottle)) < config->throttle_rate) return throttled("too many calls", kRetryAfter);
    if (unit(mix(call, kFail)) < config->error_rate) return unavailable("the cloud is out of order");
    return config;
  }

 private:
  std::array<std::atomic<std::uint64_t>, 4096> times_asked_{};  // by hash; those that share a place share the count
};

/// A page of the resources that `make` makes of the numbers from `first` to `end` - 1. Page tokens are the number to go
/// on with.
template <typename Make>
Result<ListPage> paged(const Config& config, const ListRequest& request, std::uint64_t first, std::uint64_t end,
                       Make make) {
  const auto& token = request.page_token;
  std::uint64_t next = 0;
  const auto [rest, error] = std::from_chars(token.data(), token.data() + token.size(), next);
  if (!token.empty() && (error != std::errc{} || rest != token.data() + token.size())) {
    return invalid_request("no page token of this plugin: " + token);
  }
  next = std::max(next, first);
  std::uint64_t size = std::min<std::uint64_t>(config.page, std::max<std::size_t>(1, kPageBytes / (config.bytes + 1)));
  if (request.page_size > 0) size = std::min<std::uint64_t>(size, request.page_size);
  if (next >= end) return ListPage{};
  const auto last = next + std::min(size, end - next);

  ListPage page;
  page.items.reserve(last - next);
  for (; next < last; ++next) {
    page.items.push_back(make(next));
    // No text at all means "not given": such a resource is read.
    if (!config.list_properties) page.items.back().properties = Properties::from_canonical("");
  }
  if (last < end) page.next_page_token = std::to_string(last);
  return page;
}

bool fails(const Config& config, const std::string& type) {
  return std::find(config.fail_types.begin(), config.fail_types.end(), type) != config.fail_types.end();
}

Result<ListPage> list_things(Service& service, std::uint32_t type, const ListRequest& request, JobContext& context) {
  auto config = service.enter(request, context);
  if (!config) return config.error();
  if (fails(*config, request.type)) return access_denied(request.type + " is closed to this account");
  if (type >= config->types) return ListPage{};
  const Cloud cloud(*config);
  return paged(*config, request, cloud.first(), cloud.end(), [&](std::uint64_t index) {
    return cloud.thing({type, index});
  });
}

Result<ListPage> list_parts(Service& service, const ListRequest& request, JobContext& context) {
  auto config = service.enter(request, context);
  if (!config) return config.error();
  if (fails(*config, request.type)) return access_denied(request.type + " is closed to this account");
  if (!request.parent) return invalid_request(request.type + " is listed below a " + thing_type(0));
  const Cloud cloud(*config);
  const auto parent = cloud.find_thing(request.parent->native_id);
  if (!parent || parent->type != 0) return not_found("no thing " + request.parent->native_id);
  if (request.parent->parameters != Json{{"thing", cloud.thing_name(*parent)}}) {
    return invalid_request("the list parameter `thing` is not the name of " + request.parent->native_id);
  }
  return paged(*config, request, 0, config->children,
               [&](std::uint64_t index) { return cloud.part(*parent, static_cast<std::uint32_t>(index)); });
}

/// Answers each id with `find(cloud, id)`, an optional resource.
template <typename Find>
std::vector<Result<Resource>> read_all(Service& service, const ReadManyRequest& request, JobContext& context,
                                       Find find) {
  const auto config = service.enter(request, context);
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
  const auto config = service.enter(request, context);
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
