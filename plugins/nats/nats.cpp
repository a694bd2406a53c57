#include "nats.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "jetstream.h"
#include "schemas.h"

namespace muster::nats {
namespace {

constexpr std::uint32_t kPageSize = 1000;
constexpr std::string_view kBucketPrefix = "KV_";
constexpr char kStream[] = "NATS::Stream";
constexpr char kConsumer[] = "NATS::Consumer";
constexpr char kKeyValue[] = "NATS::KeyValue";

/// The config of a stream or consumer without what the server adds about itself, which changes with an upgrade.
Json config_of(const Json& info) {
  Json config = info.at("config");
  if (const auto metadata = config.find("metadata"); metadata != config.end() && metadata->is_object()) {
    metadata->erase("_nats.ver");
    metadata->erase("_nats.level");
    if (metadata->empty()) config.erase(metadata);
  }
  return config;
}

/// Names cannot change, so a uid only tells a stream from a later one of the same name.
std::string uid_of(const std::string& name, const Json& info) {
  const auto created = info.value("created", "");
  return created.empty() ? "" : name + "@" + created;
}

Resource stream_resource(const Json& info) {
  Json config = config_of(info);
  const auto name = config.at("name").get<std::string>();
  return {name, config, uid_of(name, info)};
}

std::optional<Resource> bucket_resource(const Json& info) {
  Json config = config_of(info);
  const auto name = config.at("name").get<std::string>();
  if (name.size() <= kBucketPrefix.size() || !name.starts_with(kBucketPrefix)) return std::nullopt;
  const auto bucket = name.substr(kBucketPrefix.size());
  config["bucket"] = bucket;
  return Resource{bucket, config, uid_of(name, info)};
}

/// Without uid: a consumer's time of creation is another one after the first restart of its server.
Resource consumer_resource(const Json& info) {
  Json config = config_of(info);
  const auto stream = info.at("stream_name").get<std::string>();
  const auto name = info.at("name").get<std::string>();
  config["stream"] = stream;
  config["name"] = name;
  config["ephemeral"] = config.value("durable_name", "").empty();
  return {stream + "." + name, config, ""};
}

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

Result<JetStream> open(const BusAccess& own, const TargetInfo& target, JobContext& context) {
  const auto config = parse_config(target.config, own);
  if (!config) return config.error();
  return JetStream::open(*config, context);
}

Result<ListPage> list_streams(const BusAccess& own, const ListRequest& request, JobContext& context) {
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto listing = js->streams();
  if (!listing) return listing.error();
  return cut(*listing, request, stream_resource, [](const std::string& name) { return name; });
}

Result<ListPage> list_buckets(const BusAccess& own, const ListRequest& request, JobContext& context) {
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto listing = js->streams();
  if (!listing) return listing.error();
  return cut(*listing, request, bucket_resource, [](const std::string& name) {
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
  return cut(*listing, request, consumer_resource, [&](const std::string& name) { return stream + "." + name; });
}

Error no_id(const std::string& id, const char* of) {
  return invalid_request("'" + id + "' is no id of a " + of);
}

Result<Resource> read_stream(JetStream& js, const std::string& id) {
  if (!valid_name(id)) return no_id(id, "stream");
  const auto info = js.stream(id);
  if (!info) return info.error();
  return stream_resource(*info);
}

Result<Resource> read_bucket(JetStream& js, const std::string& id) {
  const auto name = std::string(kBucketPrefix) + id;
  if (id.empty() || !valid_name(name)) return no_id(id, "bucket");
  const auto info = js.stream(name);
  if (!info) return info.error();
  auto bucket = bucket_resource(*info);
  return bucket ? Result<Resource>(std::move(*bucket)) : not_found();
}

Result<Resource> read_consumer(JetStream& js, const std::string& id) {
  const auto dot = id.find('.');  // stands in neither name
  const auto stream = id.substr(0, dot);
  const auto name = dot == id.npos ? "" : id.substr(dot + 1);
  if (!valid_name(stream) || !valid_name(name)) return no_id(id, "consumer");
  const auto info = js.consumer(stream, name);
  if (!info) return info.error();
  return consumer_resource(*info);
}

/// Whether an answer says something of the connection, so that the same awaits what is still to be asked.
bool ends_all(Errc code) {
  return code == Errc::kNetwork || code == Errc::kTimeout || code == Errc::kCancelled;
}

using ReadOne = Result<Resource> (*)(JetStream&, const std::string&);

std::vector<Result<Resource>> read_many(const BusAccess& own, ReadOne read, const ReadManyRequest& request,
                                        JobContext& context) {
  auto js = open(own, request.target, context);
  if (!js) return {request.native_ids.size(), Result<Resource>(js.error())};
  std::vector<Result<Resource>> answers;
  answers.reserve(request.native_ids.size());
  for (const auto& id : request.native_ids) {
    const bool over = !answers.empty() && !answers.back() && ends_all(answers.back().error().code);
    answers.push_back(over ? answers.back() : read(*js, id));
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

void add_type(Plugin& plugin, const BusAccess& own, TypeInfo info, ListOne list, ReadOne read) {
  info.list_gives = ListGives::kProperties;
  info.page_size = kPageSize;
  plugin.type(std::move(info))
      .list([&own, list](const auto& request, auto& context) { return list(own, request, context); })
      .read_many([&own, read](const auto& request, auto& context) { return read_many(own, read, request, context); });
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
  stream.name = kStream;
  stream.description = "A JetStream stream";
  stream.schema = kStreamSchema;
  stream.examples = {R"({"name":"ORDERS","subjects":["orders.>"],"retention":"limits","storage":"file"})"};
  add_type(plugin, own, std::move(stream), list_streams, read_stream);

  TypeInfo consumer;
  consumer.name = kConsumer;
  consumer.description = "A consumer of a stream";
  consumer.schema = kConsumerSchema;
  consumer.parent = kStream;
  consumer.label_query = "$.name";
  consumer.examples = {R"({"stream":"ORDERS","name":"billing","durable_name":"billing","ack_policy":"explicit"})"};
  add_type(plugin, own, std::move(consumer), list_consumers, read_consumer);

  TypeInfo bucket;
  bucket.name = kKeyValue;
  bucket.description = "A key-value bucket; its properties are those of the stream that holds it";
  bucket.schema = kKeyValueSchema;
  bucket.examples = {R"({"bucket":"settings","name":"KV_settings","max_msgs_per_subject":5,"storage":"file"})"};
  add_type(plugin, own, std::move(bucket), list_buckets, read_bucket);

  plugin.inspect([&own](const auto& request, auto& context) { return inspect(own, request, context); });
}

}  // namespace muster::nats
