#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jetstream.h"
#include "muster/job.h"

namespace muster::nats {

inline constexpr std::string_view kBucketPrefix = "KV_";
inline constexpr char kStream[] = "NATS::Stream";
inline constexpr char kConsumer[] = "NATS::Consumer";
inline constexpr char kKeyValue[] = "NATS::KeyValue";

/// Where the API has an object.
struct Address {
  std::string stream, consumer;  // the consumer is empty for streams and buckets
};

/// One type of the plugin.
struct Kind {
  const char* type;
  const char* schema;  // JSON Schema
  /// errors   kInvalidRequest: no object can have this id
  Result<Address> (*address_of)(const std::string& native_id);
  std::string (*id_of)(const Json& declared);
  /// Of an INFO, or what CREATE and UPDATE answer; nothing where it is of another type.
  std::optional<Resource> (*resource_of)(const Json& info);
  /// Puts changes into a config of the API; a null leaves the value to the server.
  /// `config`   what is there; empty: it is made
  Json (*config_of)(Json config, const Json& changes);
};

extern const Kind kStreams, kConsumers, kBuckets;

Result<JetStream> open(const BusAccess& own, const TargetInfo& target, JobContext& context);

/// The API's INFO of an object.
Result<Json> info_of(JetStream& js, const Address& at);
Result<Resource> read(const Kind& kind, JetStream& js, const std::string& native_id);

}  // namespace muster::nats
