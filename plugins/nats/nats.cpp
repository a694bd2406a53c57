#include "nats.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "change.h"
#include "object.h"
#include "schemas.h"

namespace muster::nats {
namespace {

constexpr std::uint32_t kPageSize = 1000;

/// What one page shows of a whole listing: the ids after the token, which is the last id of the page before.
/// `resource_of`  makes a resource of an info, or nothing where it is of another type
/// `id_of`        native id of a missing one, or empty
ListPage cut(const Listing& listing, const ListRequest& request,
             const std::function<std::optional<Resource>(const Json&)>& resource_of,
             const std::function<std::string(const std::string&)>& id_of) {
  const auto limit = request.page_size == 0 ? kPageSize : std::min(request.page_size, kPageSize);
  ListPage page;
  for (const auto& name : listing.missing) {
    auto id = id_of(name);
    if (!id.empty()) page.problems.push_back({std::move(id), unavailable("the cluster could not tell of it")});
  }
  if (!listing.settled) {
    page.problems.push_back({"", failure(Errc::kConflict, "objects came and went while they were listed")});
  }
  for (const auto& [name, info] : listing.infos) {
    auto resource = resource_of(info);
    if (!resource || resource->native_id <= request.page_token) continue;
    if (page.items.size() == limit) {
      page.next_page_token = page.items.back().native_id;
      return page;
    }
    page.items.push_back(std::move(*resource));
  }
  return page;
}

Result<ListPage> list_streams(const BusAccess& own, const ListRequest& request, JobContext& context) {
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto listing = js->streams();
  if (!listing) return listing.error();
  return cut(*listing, request, kStreams.resource_of, [](const std::string& name) { return name; });
}

Result<ListPage> list_buckets(const BusAccess& own, const ListRequest& request, JobContext& context) {
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto listing = js->streams();
  if (!listing) return listing.error();
  return cut(*listing, request, kBuckets.resource_of, [](const std::string& name) {
    return name.starts_with(kBucketPrefix) ? name.substr(kBucketPrefix.size()) : "";
  });
}

Result<ListPage> list_consumers(const BusAccess& own, const ListRequest& request, JobContext& context) {
  if (!request.parent || !valid_name(request.parent->native_id)) {
    return invalid_request("consumers are listed below a stream");
  }
  const auto& stream = request.parent->native_id;
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto listing = js->consumers(stream);
  if (!listing) return listing.error();
  return cut(*listing, request, kConsumers.resource_of, [&](const std::string& name) { return stream + "." + name; });
}

/// Whether an answer says something of the connection, so that the same awaits what is still to be asked.
bool ends_all(Errc code) {
  return code == Errc::kNetwork || code == Errc::kTimeout || code == Errc::kCancelled;
}

std::vector<Result<Resource>> read_many(const BusAccess& own, const Kind& kind, const ReadManyRequest& request,
                                        JobContext& context) {
  auto js = open(own, request.target, context);
  if (!js) return {request.native_ids.size(), Result<Resource>(js.error())};
  std::vector<Result<Resource>> answers;
  answers.reserve(request.native_ids.size());
  for (const auto& id : request.native_ids) {
    const auto before = answers.empty() || answers.back() ? Errc{0} : answers.back().error().code;
    // A connection remembers that something was denied: what is asked next would be taken for denied, too.
    if (js && before == Errc::kAccessDenied) js = open(own, request.target, context);
    if (js) {
      answers.push_back(ends_all(before) ? answers.back() : read(kind, *js, id));
    } else {
      answers.emplace_back(js.error());
    }
  }
  return answers;
}

Result<Inspection> inspect(const BusAccess& own, const InspectRequest& request, JobContext& context) {
  const auto config = parse_config(request.target.config, own);
  if (!config) return config.error();
  auto js = JetStream::open(*config, context);
  if (!js) return js.error();
  const auto account = js->account();
  if (!account) return account.error();
  Inspection inspection;
  inspection.system = system_of(config->server, account->value("domain", config->domain));
  return inspection;
}

/// What a target shows only to those who ask for it by filters of their own.
std::vector<MatchFilter> default_filters() {
  const PropertyMatch other_kinds{"$.name", MatchOp::kRegex, R"re("^(KV_|OBJ_)")re"};
  const PropertyMatch event_name{"$.name", MatchOp::kRegex, R"("^[A-Z0-9_-]+_EVENTS$")"};
  const PropertyMatch event_description{"$.description", MatchOp::kRegex, R"("^What happened in the fleet ")"};
  const PropertyMatch ephemeral{"$.ephemeral", MatchOp::kEq, "true"};
  return {{{kStream}, {other_kinds}, FilterAction::kExclude},
          {{kStream}, {event_name, event_description}, FilterAction::kExclude},
          {{kConsumer}, {ephemeral}, FilterAction::kExclude}};
}

using ListOne = Result<ListPage> (*)(const BusAccess&, const ListRequest&, JobContext&);

/// `kind` is one of the constants.
void add_type(Plugin& plugin, const BusAccess& own, const Kind& kind, TypeInfo info, ListOne list) {
  info.name = kind.type;
  info.schema = kind.schema;
  info.list_gives = ListGives::kProperties;
  info.page_size = kPageSize;
  plugin.type(std::move(info))
      .list([&own, list](const auto& request, auto& context) { return list(own, request, context); })
      .read_many([&](const auto& request, auto& context) { return read_many(own, kind, request, context); })
      .create([&](const auto& request, auto& context) { return create(own, kind, request, context); })
      .update([&](const auto& request, auto& context) { return update(own, kind, request, context); })
      .remove([&](const auto& request, auto& context) { return remove(own, kind, request, context); });
}

}  // namespace

PluginInfo plugin_info() {
  PluginInfo info;
  info.name = "nats";
  info.ns = "NATS";
  info.version = "0.1.0";
  info.description = "Streams, consumers and key-value buckets of NATS JetStream";
  info.filters = default_filters();
  info.config_schema = kConfigSchema;
  return info;
}

void add_types(Plugin& plugin, const BusAccess& own) {
  TypeInfo stream;
  stream.description = "A JetStream stream";
  stream.examples = {
      R"({"name":"ORDERS","subjects":["orders.>"],"retention":"limits","storage":"file","max_age":604800000000000})"};
  add_type(plugin, own, kStreams, std::move(stream), list_streams);

  TypeInfo consumer;
  consumer.description = "A consumer of a stream; those that are made are durable";
  consumer.parent = kStream;
  consumer.label_query = "$.name";
  consumer.examples = {
      R"({"stream":"ORDERS","name":"billing","ack_policy":"explicit","ack_wait":60000000000,"max_deliver":5})"};
  add_type(plugin, own, kConsumers, std::move(consumer), list_consumers);

  TypeInfo bucket;
  bucket.description = "A key-value bucket; its properties are those of the stream that holds it";
  bucket.examples = {R"({"bucket":"settings","max_msgs_per_subject":5,"max_age":86400000000000,"storage":"file"})"};
  add_type(plugin, own, kBuckets, std::move(bucket), list_buckets);

  plugin.inspect([&own](const auto& request, auto& context) { return inspect(own, request, context); });
}

}  // namespace muster::nats
