#include "reply.capnp.h"
#include "schema/utf8.h"
#include "schema/views.h"
#include "schema/wire.h"

namespace muster {
namespace wire {

static_assert(static_cast<int>(MutationStatus::PENDING) == static_cast<int>(muster::MutationStatus::kPending));
static_assert(static_cast<int>(Verdict::LATER) == static_cast<int>(muster::Verdict::kLater));

constexpr std::size_t kMaxErrorBytes = 4 * 1024;
constexpr std::size_t kMaxSystemBytes = 4 * 1024;
constexpr std::size_t kMaxUidBytes = kMaxNativeIdBytes;  // as workers keep it; so do they with ids of requests
constexpr std::size_t kMaxProblems = 100'000;
constexpr std::size_t kEnvelopeWords = 96;  // of a reply: ids and all that has a fixed size

/// Codes of one process only never travel: to the other side they are a failure without a reason it knows.
std::uint16_t travelling_code(const Error& error) {
  if (error.code == Errc::kInternalFailure && error.number != 0) return error.number;
  const auto code = static_cast<std::uint16_t>(error.code);
  return code < kFirstLocalCode ? code : static_cast<std::uint16_t>(Errc::kInternalFailure);
}

void put(const Error& value, Failure::Builder to) {
  to.setCode(travelling_code(value));
  if (value.message.size() > kMaxErrorBytes) {
    to.setMessage(text(std::string(utf8_prefix(value.message, kMaxErrorBytes))));
  } else {
    to.setMessage(text(value.message));
  }
  to.setRetryAfterMs(millis(value.retry_after));
}

Error get(Failure::Reader from) {
  auto message = get_text(from.getMessage(), "Failure.message");
  message.resize(utf8_prefix(message, kMaxErrorBytes).size());
  const auto number = from.getCode();
  const bool known = number < kFirstLocalCode && !errc_name(static_cast<Errc>(number)).empty();
  return {known ? static_cast<Errc>(number) : Errc::kInternalFailure, std::move(message),
          Millis{from.getRetryAfterMs()}, known ? std::uint16_t{0} : number};
}

// Items come by the thousand: a text that is not given costs them neither bytes nor time.
void put(const muster::Item& value, Item::Builder to) {
  to.setNativeId(text(value.native_id));
  if (!value.uid.empty()) to.setUid(text(value.uid));
  if (!value.properties.empty()) to.setProperties(text(value.properties));
}

// The size of the properties is for the coordinator to judge: too large a resource is a problem of that resource.
muster::Item get(Item::Reader from) {
  return {get_native_id(from.getNativeId(), "Item.nativeId"), get_text(from.getUid(), "Item.uid", 0, kMaxUidBytes),
          get_text(from.getProperties(), "Item.properties")};
}

void put(const muster::Problem& value, Problem::Builder to) {
  to.setNativeId(text(value.native_id));
  put(value.failure, to.initFailure());
}

muster::Problem get(Problem::Reader from) {
  return {get_text(from.getNativeId(), "Problem.nativeId", 0, kMaxNativeIdBytes), get(from.getFailure())};
}

void put(const muster::ListResult& value, ListResult::Builder to) {
  put_all(value.items, to.initItems(count(value.items)));
  to.setNextPageToken(text(value.next_page_token));
  put_all(value.problems, to.initProblems(count(value.problems)));
  to.setSkipped(value.skipped);
}

muster::ListResult get(ListResult::Reader from) {
  return {get_all(from.getItems()),
          get_text(from.getNextPageToken(), "ListResult.nextPageToken", 0, kMaxPageTokenBytes),
          get_all(at_most(kMaxProblems, from.getProblems(), "ListResult.problems")), from.getSkipped()};
}

void put(const muster::ReadItem& value, ReadItem::Builder to) {
  if (const auto* item = std::get_if<muster::Item>(&value)) {
    put(*item, to.initFound());
  } else {
    put(std::get<Error>(value), to.initFailure());
  }
}

muster::ReadItem get(ReadItem::Reader from) {
  switch (from.which()) {
    case ReadItem::FOUND:
      return get(from.getFound());
    case ReadItem::FAILURE:
      return get(from.getFailure());
  }
  throw Malformed("ReadItem", "unknown kind");
}

muster::ReadResult get(ReadResult::Reader from) {
  return {get_all(at_most(kMaxReadBatch, from.getItems(), "ReadResult.items"))};
}

void put(const muster::MutationResult& value, MutationResult::Builder to) {
  to.setStatus(static_cast<MutationStatus>(value.status));
  to.setRequestId(text(value.request_id));
  to.setNativeId(text(value.native_id));
  to.setUid(text(value.uid));
  to.setProperties(text(value.properties));
  to.setRetryAfterMs(millis(value.retry_after));
}

muster::MutationResult get(MutationResult::Reader from) {
  return {get_enum(from.getStatus(), muster::MutationStatus::kPending, "MutationResult.status"),
          get_text(from.getRequestId(), "MutationResult.requestId", 0, kMaxUidBytes),
          get_text(from.getNativeId(), "MutationResult.nativeId", 0, kMaxNativeIdBytes),
          get_text(from.getUid(), "MutationResult.uid", 0, kMaxUidBytes),
          get_text(from.getProperties(), "MutationResult.properties"),
          Millis{from.getRetryAfterMs()}};
}

muster::InspectResult get(InspectResult::Reader from) {
  return {get_text(from.getSystem(), "InspectResult.system", 0, kMaxSystemBytes),
          get_all(at_most(kMaxFilters, from.getFilters(), "InspectResult.filters")),
          get_texts(at_most(kMaxTypes, from.getTypes(), "InspectResult.types"), "InspectResult.types", kMaxNameBytes)};
}

muster::CallResult get(CallResult::Reader from) {
  return {get_text(from.getOutput(), "CallResult.output"), from.getUserFault()};
}

struct PutResult {
  JobResult::Builder to;
  void operator()(const Error& error) { put(error, to.initFailure()); }
  void operator()(const muster::ListResult& result) { put(result, to.initList()); }
  void operator()(const muster::ReadResult& result) {
    put_all(result.items, to.initRead().initItems(count(result.items)));
  }
  void operator()(const muster::MutationResult& result) { put(result, to.initMutation()); }
  void operator()(const muster::InspectResult& result) {
    auto inspect = to.initInspect();
    inspect.setSystem(text(result.system));
    put_all(result.filters, inspect.initFilters(count(result.filters)));
    put_texts(result.types, inspect.initTypes(count(result.types)));
  }
  void operator()(const muster::CallResult& result) {
    auto call = to.initCall();
    call.setOutput(text(result.output));
    call.setUserFault(result.user_fault);
  }
};

muster::JobResult get(JobResult::Reader from) {
  switch (from.which()) {
    case JobResult::FAILURE:
      return get(from.getFailure());
    case JobResult::LIST:
      return get(from.getList());
    case JobResult::READ:
      return get(from.getRead());
    case JobResult::MUTATION:
      return get(from.getMutation());
    case JobResult::INSPECT:
      return get(from.getInspect());
    case JobResult::CALL:
      return get(from.getCall());
  }
  throw Malformed("JobResult", "unknown kind");
}

muster::Part get(Part::Reader from) {
  const auto parts = from.getCount();
  if (parts < 2 || parts > kMaxParts) throw Malformed("Part.count", "not 2..4096");
  if (from.getIndex() >= parts) throw Malformed("Part.index", "not below the count");
  return {from.getIndex(), parts, get_data(from.getData())};
}

struct PutBody {
  JobReply::Body::Builder to;
  void operator()(const Accepted&) { to.setAccepted(); }
  void operator()(const Busy&) { to.setBusy(); }
  void operator()(const muster::JobResult& result) { std::visit(PutResult{to.initResult()}, result); }
  void operator()(const muster::Part& value) {
    auto part = to.initPart();
    part.setIndex(value.index);
    part.setCount(value.count);
    part.setData(data(value.data));
  }
  void operator()(const ManifestBytes& manifest) { to.setManifest(data(manifest.encoded)); }
};

decltype(muster::JobReply::body) get(JobReply::Body::Reader from) {
  switch (from.which()) {
    case JobReply::Body::ACCEPTED:
      return Accepted{};
    case JobReply::Body::BUSY:
      return Busy{};
    case JobReply::Body::RESULT:
      return get(from.getResult());
    case JobReply::Body::PART:
      return get(from.getPart());
    case JobReply::Body::MANIFEST:
      return ManifestBytes{get_data(from.getManifest())};
  }
  throw Malformed("JobReply.body", "unknown kind");
}

void put(const muster::JobReplyView& value, JobReply::Builder to) {
  to.setFleet(text(value.fleet.value));
  to.setJobId(text(value.job.value));
  to.setToken(text(value.token.value));
  to.setWorker(text(value.worker.value));
  to.setAttempt(value.attempt);
  to.setCalls(value.calls);
  std::visit(PutBody{to.getBody()}, value.body);
}

muster::JobReply get(JobReply::Reader from) {
  muster::JobReply reply;
  reply.fleet = FleetId{get_token(from.getFleet(), "JobReply.fleet")};
  reply.job = JobId{get_token_or_empty(from.getJobId(), "JobReply.jobId")};
  reply.token = Token{get_token(from.getToken(), "JobReply.token")};
  reply.worker = WorkerId{get_token(from.getWorker(), "JobReply.worker")};
  reply.attempt = from.getAttempt();
  reply.calls = from.getCalls();
  reply.body = get(from.getBody());
  return reply;
}

void put(const muster::ResultAck& value, ResultAck::Builder to) {
  to.setJobId(text(value.job.value));
  to.setToken(text(value.token.value));
  to.setVerdict(static_cast<Verdict>(value.verdict));
  to.setReason(text(value.reason));
}

muster::ResultAck get(ResultAck::Reader from) {
  return {JobId{get_token(from.getJobId(), "ResultAck.jobId")}, Token{get_token(from.getToken(), "ResultAck.token")},
          get_enum(from.getVerdict(), muster::Verdict::kLater, "ResultAck.verdict"),
          get_text(from.getReason(), "ResultAck.reason")};
}

std::size_t words_of(const muster::Item& item) {
  constexpr std::size_t kPointers = 3;
  return kPointers + words(item.native_id) + words(item.uid) + words(item.properties);
}

std::size_t words_of(const Error& error) {
  return 3 + words(error.message);
}

/// What is large in a reply.
std::size_t words_of(const decltype(muster::JobReply::body)& body) {
  if (const auto* part = std::get_if<muster::Part>(&body)) return words(part->data);
  if (const auto* manifest = std::get_if<ManifestBytes>(&body)) return words(manifest->encoded);
  const auto* result = std::get_if<muster::JobResult>(&body);
  if (result == nullptr) return 0;
  std::size_t sum = 0;
  if (const auto* list = std::get_if<muster::ListResult>(result)) {
    sum += words(list->next_page_token);
    for (const auto& item : list->items) sum += words_of(item);
    for (const auto& problem : list->problems) sum += 2 + words(problem.native_id) + words_of(problem.failure);
  } else if (const auto* read = std::get_if<muster::ReadResult>(result)) {
    for (const auto& item : read->items) {
      sum += 2 + std::visit([](const auto& answer) { return words_of(answer); }, item);
    }
  }
  return sum;
}

}  // namespace wire

Bytes encode(const JobReplyView& message) {
  return wire::encode_as<wire::JobReply>(message, wire::kEnvelopeWords + wire::words_of(message.body));
}

Bytes encode(const JobReply& message) {
  return encode(JobReplyView{message.fleet, message.job, message.token, message.worker, message.attempt, message.calls,
                             message.body});
}

Bytes encode(const ResultAck& message) {
  return wire::encode_as<wire::ResultAck>(message);
}

template <>
Result<JobReply> decode(std::string_view bytes) {
  return wire::decode_as<wire::JobReply>(bytes);
}

template <>
Result<ResultAck> decode(std::string_view bytes) {
  return wire::decode_as<wire::ResultAck>(bytes);
}

}  // namespace muster
