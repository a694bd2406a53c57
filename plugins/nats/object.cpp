#include "object.h"

#include <algorithm>

#include "schemas.h"

namespace muster::nats {
namespace {

/// The config of a stream or consumer without what the server adds about itself, which changes with an upgrade.
Json config_in(const Json& info) {
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

std::optional<Resource> stream_resource(const Json& info) {
  Json config = config_in(info);
  const auto name = config.at("name").get<std::string>();
  return Resource{name, config, uid_of(name, info)};
}

std::optional<Resource> bucket_resource(const Json& info) {
  Json config = config_in(info);
  const auto name = config.at("name").get<std::string>();
  if (name.size() <= kBucketPrefix.size() || !name.starts_with(kBucketPrefix)) return std::nullopt;
  const auto bucket = name.substr(kBucketPrefix.size());
  config["bucket"] = bucket;
  return Resource{bucket, config, uid_of(name, info)};
}

/// Without uid: a consumer's time of creation is another one after the first restart of its server.
std::optional<Resource> consumer_resource(const Json& info) {
  Json config = config_in(info);
  const auto stream = info.at("stream_name").get<std::string>();
  const auto name = info.at("name").get<std::string>();
  config["stream"] = stream;
  config["name"] = name;
  config["ephemeral"] = config.value("durable_name", "").empty();
  return Resource{stream + "." + name, config, ""};
}

Error no_id(const std::string& id, const char* of) {
  return invalid_request("'" + id + "' is no id of a " + of);
}

Result<Address> stream_address(const std::string& id) {
  if (!valid_name(id)) return no_id(id, "stream");
  return Address{id, ""};
}

Result<Address> bucket_address(const std::string& id) {
  const auto name = std::string(kBucketPrefix) + id;
  if (id.empty() || !valid_name(name)) return no_id(id, "bucket");
  return Address{name, ""};
}

Result<Address> consumer_address(const std::string& id) {
  const auto dot = id.find('.');  // stands in neither name
  const auto stream = id.substr(0, dot);
  const auto name = dot == id.npos ? "" : id.substr(dot + 1);
  if (!valid_name(stream) || !valid_name(name)) return no_id(id, "consumer");
  return Address{stream, name};
}

std::string stream_id(const Json& declared) {
  return declared.at("name").get<std::string>();
}
std::string bucket_id(const Json& declared) {
  return declared.at("bucket").get<std::string>();
}
std::string consumer_id(const Json& declared) {
  return declared.at("stream").get<std::string>() + "." + declared.at("name").get<std::string>();
}

/// Absence is what the server takes by itself.
void put(Json& config, const Json& changes) {
  for (const auto& [name, value] : changes.items()) {
    if (value.is_null()) {
      config.erase(name);
    } else {
      config[name] = value;
    }
  }
}

Json stream_config(Json config, const Json& changes) {
  put(config, changes);
  return config;
}

Json consumer_config(Json config, const Json& changes) {
  put(config, changes);
  if (changes.contains("name")) config["durable_name"] = changes["name"];
  config.erase("stream");
  config.erase("name");  // older servers know no other name than the durable one
  return config;
}

/// As the clients of NATS make buckets.
Json bucket_config(Json config, const Json& changes) {
  if (config.empty()) {
    const auto bucket = bucket_id(changes);
    config = {{"name", std::string(kBucketPrefix) + bucket},
              {"subjects", {"$KV." + bucket + ".>"}},
              {"max_msgs_per_subject", 1},
              {"discard", "new"},
              {"allow_rollup_hdrs", true},
              {"deny_delete", true},
              {"allow_direct", true}};
  }
  put(config, changes);
  config.erase("bucket");
  if (!config.contains("max_msgs_per_subject")) config["max_msgs_per_subject"] = 1;
  // The server's own window is two minutes, and none is longer than values live.
  if (const auto age = config.value("max_age", Json::number_integer_t{0});
      age > 0 && config.value("duplicate_window", Json::number_integer_t{0}) > age) {
    config["duplicate_window"] = age;
  }
  return config;
}

}  // namespace

const Kind kStreams{kStream, kStreamSchema, stream_address, stream_id, stream_resource, stream_config};
const Kind kConsumers{kConsumer, kConsumerSchema, consumer_address, consumer_id, consumer_resource, consumer_config};
const Kind kBuckets{kKeyValue, kKeyValueSchema, bucket_address, bucket_id, bucket_resource, bucket_config};

Result<JetStream> open(const BusAccess& own, const TargetInfo& target, JobContext& context) {
  const auto config = parse_config(target.config, own);
  if (!config) return config.error();
  return JetStream::open(*config, context);
}

Result<Json> info_of(JetStream& js, const Address& at) {
  return at.consumer.empty() ? js.stream(at.stream) : js.consumer(at.stream, at.consumer);
}

Result<Resource> read(const Kind& kind, JetStream& js, const std::string& native_id) {
  const auto at = kind.address_of(native_id);
  if (!at) return at.error();
  const auto info = info_of(js, *at);
  if (!info) return info.error();
  auto resource = kind.resource_of(*info);
  return resource ? Result<Resource>(std::move(*resource)) : not_found();
}

}  // namespace muster::nats
