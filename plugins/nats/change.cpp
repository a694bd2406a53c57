#include "change.h"

#include "declared.h"

namespace muster::nats {
namespace {

/// A server takes the first of a consumer's backoff for its wait: another one that is said would never be read back.
Result<void> check_wait(const Json& said, const Json& config) {
  const auto backoff = config.value("backoff", Json::array());
  if (backoff.empty() || !said.contains("ack_wait") || said["ack_wait"] == backoff.front()) return {};
  return invalid_request("ack_wait: is the first of backoff, or not declared");
}

/// The answer to a change, as the object that it tells of.
Result<Mutation> answer(const Kind& kind, const Json& schema, const Json& wanted, const Result<Json>& info) {
  if (!info) return info.error();
  auto resource = kind.resource_of(*info);
  if (!resource) return failure(Errc::kInternalFailure, "the server answered with another object");
  if (const auto lost = not_kept(schema, wanted, resource->properties.json()); !lost.empty()) {
    return not_stabilized("this server does not keep as declared: " + lost);
  }
  return Mutation(std::move(*resource));
}

/// The API's INFO, when it is as the precondition says.
Result<Json> hold(const Kind& kind, JetStream& js, const Address& at, const Precondition& precondition) {
  auto info = info_of(js, at);
  if (!info) return info.error();
  const auto there = kind.resource_of(*info);
  if (!there) return not_found();
  if (violates(precondition, *there)) return conflict(there->native_id + " is not as it was when this was planned");
  return info;
}

}  // namespace

Result<Mutation> create(const BusAccess& own, const Kind& kind, const CreateRequest& request, JobContext& context) {
  const auto schema = Json::parse(kind.schema);
  const auto declared = checked_declaration(schema, request.properties);
  if (!declared) return declared.error();
  const auto id = kind.id_of(*declared);
  const auto at = kind.address_of(id);
  if (!at) return at.error();
  if (declared->value("durable_name", at->consumer) != at->consumer) {
    return invalid_request("durable_name: is the name, or not declared");
  }
  if (auto good = check_wait(*declared, *declared); !good) return good.error();
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto there = info_of(*js, *at);
  if (there) return already_exists(id + " is there already");
  if (there.error().code != Errc::kNotFound) return there.error();
  const auto config = kind.config_of(Json::object(), *declared);
  return answer(kind, schema, *declared,
                at->consumer.empty() ? js->create_stream(config) : js->put_consumer("create", at->stream, config));
}

Result<Mutation> update(const BusAccess& own, const Kind& kind, const UpdateRequest& request, JobContext& context) {
  const auto schema = Json::parse(kind.schema);
  const auto changes = changes_of(schema, request.prior, request.desired);
  if (!changes) return changes.error();
  const auto at = kind.address_of(request.native_id);
  if (!at) return at.error();
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  const auto there = hold(kind, *js, *at, request.precondition);
  if (!there) return there.error();
  if (changes->empty()) return answer(kind, schema, *changes, there);
  const auto config = kind.config_of(there->at("config"), *changes);
  if (at->consumer.empty()) return answer(kind, schema, *changes, js->update_stream(config));
  if (auto good = check_wait(*changes, config); !good) return good.error();
  if (config.value("durable_name", "").empty()) return unsupported("a consumer that is not durable cannot be changed");
  return answer(kind, schema, *changes, js->put_consumer("update", at->stream, config));
}

Result<Mutation> remove(const BusAccess& own, const Kind& kind, const DeleteRequest& request, JobContext& context) {
  const auto at = kind.address_of(request.native_id);
  if (!at) return at.error();
  auto js = open(own, request.target, context);
  if (!js) return js.error();
  if (const auto there = hold(kind, *js, *at, request.precondition); !there) return there.error();
  const auto gone =
      at->consumer.empty() ? js->delete_stream(at->stream) : js->delete_consumer(at->stream, at->consumer);
  if (!gone) return gone.error();
  return Mutation::deleted();
}

}  // namespace muster::nats
