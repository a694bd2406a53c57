#include "job.capnp.h"
#include "schema/views.h"
#include "schema/wire.h"

namespace muster {
namespace wire {

static_assert(static_cast<int>(CallKind::RECOVER) == static_cast<int>(muster::CallKind::kRecover));
static_assert(static_cast<int>(Priority::COMMAND) == static_cast<int>(muster::Priority::kCommand));

void put(const muster::SecretPart& value, SecretPart::Builder to) {
  switch (value.kind) {
    case muster::SecretPart::Kind::kLiteral:
      return to.setLiteral(text(value.text));
    case muster::SecretPart::Kind::kEnv:
      return to.setEnv(text(value.text));
    case muster::SecretPart::Kind::kFile:
      return to.setFile(text(value.text));
    case muster::SecretPart::Kind::kSecret:
      return to.setSecret(text(value.text));
  }
}

muster::SecretPart get(SecretPart::Reader from) {
  using Kind = muster::SecretPart::Kind;
  switch (from.which()) {
    case SecretPart::LITERAL:
      return {Kind::kLiteral, get_text(from.getLiteral(), "SecretPart.literal")};
    case SecretPart::ENV:
      return {Kind::kEnv, get_text(from.getEnv(), "SecretPart.env")};
    case SecretPart::FILE:
      return {Kind::kFile, get_text(from.getFile(), "SecretPart.file")};
    case SecretPart::SECRET:
      return {Kind::kSecret, get_text(from.getSecret(), "SecretPart.secret")};
  }
  throw Malformed("SecretPart", "unknown kind");
}

void put(const muster::Secret& value, Secret::Builder to) {
  to.setPointer(text(value.pointer));
  put_all(value.parts, to.initParts(count(value.parts)));
}

muster::Secret get(Secret::Reader from) {
  return {get_text(from.getPointer(), "Secret.pointer"), get_all(from.getParts())};
}

void put(const muster::Document& value, Document::Builder to) {
  to.setJson(text(value.json));
  put_all(value.secrets, to.initSecrets(count(value.secrets)));
}

muster::Document get(Document::Reader from) {
  return {get_text(from.getJson(), "Document.json"), get_all(from.getSecrets())};
}

void put(const muster::Target& value, Target::Builder to) {
  to.setId(text(value.id.value));
  to.setName(text(value.name));
  put(value.config, to.initConfig());
}

muster::Target get(Target::Reader from) {
  return {TargetId{get_token(from.getId(), "Target.id")}, get_text(from.getName(), "Target.name"),
          get(from.getConfig())};
}

void put(const muster::Parent& value, Parent::Builder to) {
  to.setType(text(value.type));
  to.setNativeId(text(value.native_id));
  to.setParameters(text(value.parameters));
}

muster::Parent get(Parent::Reader from) {
  return {get_text(from.getType(), "Parent.type"), get_native_id(from.getNativeId(), "Parent.nativeId"),
          get_text(from.getParameters(), "Parent.parameters")};
}

void put(const muster::Precondition& value, Precondition::Builder to) {
  to.setUid(text(value.uid));
  to.setStateHash(text(value.state_hash));
}

muster::Precondition get(Precondition::Reader from) {
  return {get_text(from.getUid(), "Precondition.uid"), get_text(from.getStateHash(), "Precondition.stateHash")};
}

void put(const muster::ListJob& value, ListJob::Builder to) {
  if (value.parent) put(*value.parent, to.initParent());
  to.setPageToken(text(value.page_token));
  to.setPageSize(value.page_size);
  to.setPages(value.pages);
}

muster::ListJob get(ListJob::Reader from) {
  muster::ListJob job;
  if (from.hasParent()) job.parent = get(from.getParent());
  job.page_token = get_text(from.getPageToken(), "ListJob.pageToken", 0, kMaxPageTokenBytes);
  job.page_size = from.getPageSize();
  job.pages = from.getPages();
  return job;
}

void put(const muster::ReadJob& value, ReadJob::Builder to) {
  put_texts(value.native_ids, to.initNativeIds(count(value.native_ids)));
}

muster::ReadJob get(ReadJob::Reader from) {
  const auto ids = at_most(kMaxReadBatch, from.getNativeIds(), "ReadJob.nativeIds");
  if (ids.size() == 0) throw Malformed("ReadJob.nativeIds", "empty");
  muster::ReadJob job;
  job.native_ids.reserve(ids.size());
  for (const auto id : ids) job.native_ids.push_back(get_native_id(id, "ReadJob.nativeIds"));
  return job;
}

void put(const muster::CreateJob& value, CreateJob::Builder to) {
  to.setIdempotencyKey(text(value.idempotency_key));
  put(value.properties, to.initProperties());
  if (value.parent) put(*value.parent, to.initParent());
}

muster::CreateJob get(CreateJob::Reader from) {
  muster::CreateJob job;
  job.idempotency_key = get_text(from.getIdempotencyKey(), "CreateJob.idempotencyKey");
  job.properties = get(from.getProperties());
  if (from.hasParent()) job.parent = get(from.getParent());
  return job;
}

void put(const muster::UpdateJob& value, UpdateJob::Builder to) {
  to.setIdempotencyKey(text(value.idempotency_key));
  to.setNativeId(text(value.native_id));
  to.setPrior(text(value.prior));
  put(value.desired, to.initDesired());
  to.setPatch(text(value.patch));
  put(value.precondition, to.initPrecondition());
}

muster::UpdateJob get(UpdateJob::Reader from) {
  return {get_text(from.getIdempotencyKey(), "UpdateJob.idempotencyKey"),
          get_native_id(from.getNativeId(), "UpdateJob.nativeId"),
          get_text(from.getPrior(), "UpdateJob.prior"),
          get(from.getDesired()),
          get_text(from.getPatch(), "UpdateJob.patch"),
          get(from.getPrecondition())};
}

void put(const muster::DeleteJob& value, DeleteJob::Builder to) {
  to.setIdempotencyKey(text(value.idempotency_key));
  to.setNativeId(text(value.native_id));
  put(value.precondition, to.initPrecondition());
}

muster::DeleteJob get(DeleteJob::Reader from) {
  return {get_text(from.getIdempotencyKey(), "DeleteJob.idempotencyKey"),
          get_native_id(from.getNativeId(), "DeleteJob.nativeId"), get(from.getPrecondition())};
}

void put(const muster::StatusJob& value, StatusJob::Builder to) {
  to.setRequestId(text(value.request_id));
  to.setNativeId(text(value.native_id));
}

muster::StatusJob get(StatusJob::Reader from) {
  return {get_text(from.getRequestId(), "StatusJob.requestId"),
          get_text(from.getNativeId(), "StatusJob.nativeId", 0, kMaxNativeIdBytes)};
}

void put(const muster::CallJob& value, CallJob::Builder to) {
  to.setKind(static_cast<CallKind>(value.kind));
  to.setFunction(text(value.function));
  put(value.input, to.initInput());
  to.setIdempotencyKey(text(value.idempotency_key));
}

muster::CallJob get(CallJob::Reader from) {
  return {get_enum(from.getKind(), muster::CallKind::kRecover, "CallJob.kind"),
          get_text(from.getFunction(), "CallJob.function"), get(from.getInput()),
          get_text(from.getIdempotencyKey(), "CallJob.idempotencyKey")};
}

struct PutOperation {
  Job::Operation::Builder to;
  void operator()(const muster::ListJob& job) { put(job, to.initList()); }
  void operator()(const muster::ReadJob& job) { put(job, to.initRead()); }
  void operator()(const muster::CreateJob& job) { put(job, to.initCreate()); }
  void operator()(const muster::UpdateJob& job) { put(job, to.initUpdate()); }
  void operator()(const muster::DeleteJob& job) { put(job, to.initDelete()); }
  void operator()(const muster::StatusJob& job) { put(job, to.initStatus()); }
  void operator()(const muster::InspectJob&) { to.initInspect(); }
  void operator()(const muster::CallJob& job) { put(job, to.initCall()); }
};

JobOperation get(Job::Operation::Reader from) {
  switch (from.which()) {
    case Job::Operation::LIST:
      return get(from.getList());
    case Job::Operation::READ:
      return get(from.getRead());
    case Job::Operation::CREATE:
      return get(from.getCreate());
    case Job::Operation::UPDATE:
      return get(from.getUpdate());
    case Job::Operation::DELETE:
      return get(from.getDelete());
    case Job::Operation::STATUS:
      return get(from.getStatus());
    case Job::Operation::INSPECT:
      return muster::InspectJob{};
    case Job::Operation::CALL:
      return get(from.getCall());
  }
  throw Malformed("Job.operation", "unknown operation");
}

void put(const muster::JobView& value, Job::Builder to) {
  to.setFleet(text(value.fleet.value));
  to.setId(text(value.id.value));
  to.setToken(text(value.token.value));
  to.setAttempt(value.attempt);
  to.setNamespace(text(value.ns));
  to.setPool(text(value.pool));
  put(value.target, to.initTarget());
  to.setType(text(value.type));
  to.setManifest(text(value.manifest));
  to.setLeaseMs(millis(value.lease));
  to.setDeadlineMs(millis(value.deadline));
  to.setPriority(static_cast<Priority>(value.priority));
  std::visit(PutOperation{to.getOperation()}, value.operation);
  to.setWaitMs(static_cast<std::uint16_t>(std::clamp<Millis::rep>(value.wait.count(), 0, UINT16_MAX)));
}

muster::Job get(Job::Reader from) {
  muster::Job job;
  job.fleet = FleetId{get_token(from.getFleet(), "Job.fleet")};
  job.id = JobId{get_token(from.getId(), "Job.id")};
  job.token = Token{get_token(from.getToken(), "Job.token")};
  job.attempt = from.getAttempt();
  job.ns = get_namespace(from.getNamespace(), "Job.namespace");
  job.pool = get_namespace(from.getPool(), "Job.pool");
  job.target = get(from.getTarget());
  job.type = get_text(from.getType(), "Job.type");
  job.manifest = get_text(from.getManifest(), "Job.manifest");
  job.lease = Millis{from.getLeaseMs()};
  job.deadline = Millis{from.getDeadlineMs()};
  job.priority = get_enum(from.getPriority(), muster::Priority::kCommand, "Job.priority");
  job.operation = get(from.getOperation());
  job.wait = Millis{from.getWaitMs()};
  return job;
}

}  // namespace wire

Bytes encode(const JobView& message) {
  return wire::encode_as<wire::Job>(message);
}

Bytes encode(const Job& message) {
  return encode(JobView{message.fleet, message.id, message.token, message.attempt, message.ns, message.pool,
                        message.target, message.type, message.manifest, message.lease, message.deadline,
                        message.priority, message.operation, message.wait});
}

template <>
Result<Job> decode(std::string_view bytes) {
  return wire::decode_as<wire::Job>(bytes);
}

}  // namespace muster
