#include <capnp/any.h>
#include <capnp/schema.h>
#include <capnp/serialize.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>

#include "schema/codec.h"
#include "wire/samples.h"
#include "wire/wire_types.h"

namespace muster::testing {
namespace {

template <typename T>
std::string problem_of(std::string_view bytes) {
  const auto decoded = decode<T>(bytes);
  if (decoded.has_value()) return "none";
  CHECK(decoded.error().code == Errc::kMalformed);
  return decoded.error().message;
}

/// The encoded `value` after `change` was made to it on the wire.
template <typename T>
Bytes changed(const T& value, const std::function<void(typename Wire<T>::Root::Builder)>& change) {
  const auto bytes = encode(value);
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  std::copy(bytes.begin(), bytes.end(), words.asChars().begin());
  capnp::MallocMessageBuilder message;
  capnp::initMessageBuilderFromFlatArrayCopy(words, message);
  change(message.getRoot<typename Wire<T>::Root>());
  const auto flat = capnp::messageToFlatArray(message);
  return {flat.asChars().begin(), flat.asChars().size()};
}

/// Sets the discriminant of a union to a member that no version has. `Group` is the struct or group that holds it.
template <typename Group, typename Builder>
void set_unknown_member(Builder holder) {
  const auto offset = capnp::Schema::from<Group>().getProto().getStruct().getDiscriminantOffset();
  auto data = capnp::toAny(holder).getDataSection();
  data[offset * 2] = 0xee;
  data[offset * 2 + 1] = 0xee;
}

template <typename T>
T sample(std::string_view variant) {
  for (auto& candidate : samples<T>()) {
    if (candidate.variant == variant) return candidate.value;
  }
  FAIL("no sample " << variant);
  return {};
}

constexpr auto kUnknown = static_cast<std::uint16_t>(0x7777);

}  // namespace

TEMPLATE_TEST_CASE("a truncated message is malformed, wherever it ends", "[codec]", MUSTER_MESSAGES) {
  for (const auto& [variant, value] : samples<TestType>()) {
    CAPTURE(variant);
    const auto bytes = encode(value);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      if (decode<TestType>(std::string_view(bytes).substr(0, size)).has_value()) FAIL("accepted " << size << " bytes");
    }
  }
}

TEMPLATE_TEST_CASE("bytes after the message are malformed", "[codec]", MUSTER_MESSAGES) {
  const auto bytes = encode(samples<TestType>().front().value);
  CHECK(problem_of<TestType>(bytes + "x") == "message: truncated");
  CHECK(problem_of<TestType>(bytes + std::string(8, '\0')) == "message: trailing bytes");
  CHECK(problem_of<TestType>(bytes + bytes) == "message: trailing bytes");
}

TEMPLATE_TEST_CASE("a flipped bit gives an error or a value that is written as it is read", "[codec]",
                   MUSTER_MESSAGES) {
  for (const auto& [variant, value] : samples<TestType>()) {
    CAPTURE(variant);
    auto bytes = encode(value);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        const char before = bytes[at];
        bytes[at] = static_cast<char>(before ^ (1 << bit));
        const auto decoded = decode<TestType>(bytes);
        if (decoded.has_value()) {
          const auto again = decode<TestType>(encode(*decoded));
          if (!again.has_value() || !(*again == *decoded)) FAIL("byte " << at << ", bit " << bit);
        } else if (decoded.error().code != Errc::kMalformed) {
          FAIL("byte " << at << ", bit " << bit << ": " << decoded.error().message);
        }
        bytes[at] = before;
      }
    }
  }
}

TEMPLATE_TEST_CASE("garbage is malformed", "[codec]", MUSTER_MESSAGES) {
  CHECK(problem_of<TestType>("") == "message: truncated");
  CHECK(problem_of<TestType>("{\"api\":1}") == "message: truncated");
  CHECK(problem_of<TestType>(std::string(64, '\xff')) != "none");
  CHECK(problem_of<TestType>(std::string((64 << 20) + 8, '\0')) == "message: longer than 64 MiB");
  CHECK(problem_of<TestType>(std::string(16, 'x')) == "message: truncated");
  CHECK(problem_of<TestType>(std::string(8, '\0')) == "message: empty");
}

TEST_CASE("a frame that does not fit its message is told from the frame alone", "[codec]") {
  const auto framed = [](const std::vector<std::uint32_t>& table, std::size_t words) {
    Bytes bytes;
    for (const std::uint32_t number : table) {
      for (unsigned i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i));
    }
    return problem_of<RollCall>(bytes + Bytes(words * 8, '\0'));
  };
  constexpr std::uint32_t kMost = 0xffff'ffff;
  CHECK(framed({0, 2}, 1) == "message: truncated");
  CHECK(framed({0, 1}, 2) == "message: trailing bytes");
  CHECK(framed({0, kMost}, 1) == "message: truncated");
  CHECK(framed({kMost, 1}, 1) == "message: truncated");            // 2^32 segments, and no 0 of them
  CHECK(framed({kMost - 1, 1}, 1) == "message: truncated");        // nor as many as 32 bits hold
  CHECK(framed({1, 1}, 0) == "message: truncated");                // ends in the table
  CHECK(framed({1, 1, 1, 0}, 1) == "message: truncated");          // in the second segment
  CHECK(framed({1, 1, 1, 0}, 3) == "message: trailing bytes");     // behind it
  CHECK(framed({2, 1, kMost, kMost}, 1) == "message: truncated");  // a sum that is more than 32 bits
  CHECK(framed({1, 0, 1, 0}, 1) == "message: empty");              // no place for the root
  // These are whole frames: what is wrong is said of their content.
  const auto of_content = Catch::StartsWith("RollCall.");
  CHECK_THAT(framed({0, 1}, 1), of_content);
  CHECK_THAT(framed({1, 1, 1, 0}, 2), of_content);
  CHECK_THAT(framed({2, 1, 0, 1}, 2), of_content);
}

TEST_CASE("a message in several segments is read", "[codec]") {
  capnp::MallocMessageBuilder message(1, capnp::AllocationStrategy::FIXED_SIZE);
  auto root = message.initRoot<wire::RollCall>();
  root.setFleet("f");
  root.setCoordinator("c");
  REQUIRE(message.getSegmentsForOutput().size() > 1);
  const auto flat = capnp::messageToFlatArray(message);
  const auto decoded = decode<RollCall>({flat.asChars().begin(), flat.asChars().size()});
  REQUIRE(decoded.has_value());
  CHECK((*decoded == RollCall{FleetId{"f"}, CoordinatorId{"c"}}));
}

TEST_CASE("an unknown union member is malformed", "[codec]") {
  const auto job =
      changed(sample<Job>("list"), [](wire::Job::Builder to) { set_unknown_member<wire::Job::Operation>(to); });
  CHECK(problem_of<Job>(job) == "Job.operation: unknown operation");
  const auto body = changed(sample<JobReply>("busy"),
                            [](wire::JobReply::Builder to) { set_unknown_member<wire::JobReply::Body>(to); });
  CHECK(problem_of<JobReply>(body) == "JobReply.body: unknown kind");
  const auto result = changed(sample<JobReply>("call"), [](wire::JobReply::Builder to) {
    set_unknown_member<wire::JobResult>(to.getBody().getResult());
  });
  CHECK(problem_of<JobReply>(result) == "JobResult: unknown kind");
  const auto item = changed(sample<JobReply>("read"), [](wire::JobReply::Builder to) {
    set_unknown_member<wire::ReadItem>(to.getBody().getResult().getRead().getItems()[0]);
  });
  CHECK(problem_of<JobReply>(item) == "ReadItem: unknown kind");
  const auto secret = changed(sample<Job>("read"), [](wire::Job::Builder to) {
    set_unknown_member<wire::SecretPart>(to.getTarget().getConfig().getSecrets()[0].getParts()[1]);
  });
  CHECK(problem_of<Job>(secret) == "SecretPart: unknown kind");
  const auto condition = changed(sample<Manifest>("full"), [](wire::Manifest::Builder to) {
    set_unknown_member<wire::Condition>(to.getFilters()[0].getConditions()[0]);
  });
  CHECK(problem_of<Manifest>(condition) == "Condition: unknown kind");
  const auto answer = changed(sample<AnnouncementReply>("accepted"), [](wire::AnnouncementReply::Builder to) {
    set_unknown_member<wire::AnnouncementReply>(to);
  });
  CHECK(problem_of<AnnouncementReply>(answer) == "AnnouncementReply: unknown kind");
  const auto control =
      changed(sample<Control>("drain"), [](wire::Control::Builder to) { set_unknown_member<wire::Control>(to); });
  CHECK(problem_of<Control>(control) == "Control: unknown kind");
}

TEST_CASE("an unknown enum value is malformed", "[codec]") {
  const auto priority = changed(sample<Job>("list"),
                                [](wire::Job::Builder to) { to.setPriority(static_cast<wire::Priority>(kUnknown)); });
  CHECK(problem_of<Job>(priority) == "Job.priority: unknown value");
  const auto kind = changed(sample<Job>("call"), [](wire::Job::Builder to) {
    to.getOperation().getCall().setKind(static_cast<wire::CallKind>(kUnknown));
  });
  CHECK(problem_of<Job>(kind) == "CallJob.kind: unknown value");
  const auto status = changed(sample<JobReply>("mutation"), [](wire::JobReply::Builder to) {
    to.getBody().getResult().getMutation().setStatus(static_cast<wire::MutationStatus>(kUnknown));
  });
  CHECK(problem_of<JobReply>(status) == "MutationResult.status: unknown value");
  const auto verdict = changed(sample<ResultAck>("later"), [](wire::ResultAck::Builder to) {
    to.setVerdict(static_cast<wire::Verdict>(kUnknown));
  });
  CHECK(problem_of<ResultAck>(verdict) == "ResultAck.verdict: unknown value");
  const auto gives = changed(sample<Manifest>("full"), [](wire::Manifest::Builder to) {
    to.getTypes()[0].setListGives(static_cast<wire::ListGives>(kUnknown));
  });
  CHECK(problem_of<Manifest>(gives) == "TypeDescriptor.listGives: unknown value");
  const auto operation = changed(sample<Manifest>("full"), [](wire::Manifest::Builder to) {
    to.getTypes()[1].getOperations().set(2, static_cast<wire::Operation>(kUnknown));
  });
  CHECK(problem_of<Manifest>(operation) == "TypeDescriptor.operations: unknown value");
  const auto action = changed(sample<Manifest>("full"), [](wire::Manifest::Builder to) {
    to.getFilters()[0].setAction(static_cast<wire::FilterAction>(kUnknown));
  });
  CHECK(problem_of<Manifest>(action) == "MatchFilter.action: unknown value");
  const auto op = changed(sample<Manifest>("full"), [](wire::Manifest::Builder to) {
    to.getFilters()[0].getConditions()[0].getProperty().setOp(static_cast<wire::MatchOp>(kUnknown));
  });
  CHECK(problem_of<Manifest>(op) == "PropertyMatch.op: unknown value");
}

TEST_CASE("an unknown error code is an internal failure that keeps its number", "[codec]") {
  for (const std::uint16_t number : {std::uint16_t{16}, std::uint16_t{999}, std::uint16_t{1008}, kUnknown}) {
    const auto bytes = changed(sample<JobReply>("failure"), [number](wire::JobReply::Builder to) {
      to.getBody().getResult().getFailure().setCode(number);
    });
    const auto decoded = decode<JobReply>(bytes);
    REQUIRE(decoded.has_value());
    const auto& error = std::get<Error>(std::get<JobResult>(decoded->body));
    CHECK(error.code == Errc::kInternalFailure);
    CHECK(error.number == number);
    CHECK(error.message == "quota of 10/s used up");
    CHECK((encode(*decoded) == bytes));
  }
}

TEST_CASE("text that is not UTF-8 is malformed", "[codec]") {
  auto reply = sample<JobReply>("list");
  auto& list = std::get<ListResult>(std::get<JobResult>(reply.body));
  list.items[1].native_id =
      "gr\xf6\xdf"
      "e";
  CHECK(problem_of<JobReply>(encode(reply)) == "Item.nativeId: not UTF-8");
  auto job = sample<Job>("inspect");
  job.target.name = "\xed\xa0\x80";  // a surrogate
  CHECK(problem_of<Job>(encode(job)) == "Target.name: not UTF-8");
}

TEST_CASE("ids that stand in subjects are tokens", "[codec]") {
  for (const auto* bad : {"", "a.b", "*", "a>", "a b", "a\n"}) {
    CAPTURE(bad);
    auto job = sample<Job>("list");
    job.token = Token{bad};
    CHECK(problem_of<Job>(encode(job)) == "Job.token: not a subject token");
    auto control = sample<Control>("go");
    control.action = Go{{JobId{bad}, Token{"t"}}};
    CHECK(problem_of<Control>(encode(control)) == "Running.jobId: not a subject token");
    auto heartbeat = sample<Heartbeat>("idle");
    heartbeat.ns = bad;
    CHECK(problem_of<Heartbeat>(encode(heartbeat)) == "Heartbeat.namespace: not [A-Za-z0-9][A-Za-z0-9_-]{0,63}");
  }
}

TEST_CASE("as many jobs may run as a worker can have slots", "[codec]") {
  auto heartbeat = sample<Heartbeat>("idle");
  auto announcement = sample<Announcement>("first");
  const auto run = [&](std::size_t count) {
    heartbeat.running.assign(count, {JobId{"01HHZNZ1C7S05YHFW1R3N3PVV2-1234-5"}, Token{"0123456789abcdefghijkl"}});
    announcement.running = heartbeat.running;
  };
  run(1024);
  CHECK((decode<Heartbeat>(encode(heartbeat)).value() == heartbeat));
  CHECK((decode<Announcement>(encode(announcement)).value() == announcement));
  run(1025);
  CHECK(problem_of<Heartbeat>(encode(heartbeat)) == "Heartbeat.running: too many");
  CHECK(problem_of<Announcement>(encode(announcement)) == "Announcement.running: too many");
}

TEST_CASE("names in an announcement are left to the coordinator, which can answer", "[codec]") {
  auto announcement = sample<Announcement>("first");
  announcement.worker = WorkerId{"a.b"};
  announcement.ns = "";
  announcement.pool = "no pool";
  const auto decoded = decode<Announcement>(encode(announcement));
  REQUIRE(decoded.has_value());
  CHECK((*decoded == announcement));
  announcement.worker = WorkerId{std::string(257, 'w')};
  CHECK(problem_of<Announcement>(encode(announcement)) == "Announcement.worker: too long");
}

TEST_CASE("an answer to sendManifest names no job", "[codec]") {
  auto reply = sample<JobReply>("failure");
  reply.job = {};
  for (decltype(reply.body) body : {decltype(reply.body){ManifestBytes{"x"}}, {Part{0, 2, "x"}}, reply.body}) {
    reply.body = std::move(body);
    const auto decoded = decode<JobReply>(encode(reply));
    REQUIRE(decoded.has_value());
    CHECK((*decoded == reply));
  }
}

TEST_CASE("bounds of the protocol hold", "[codec]") {
  auto reply = sample<JobReply>("list");
  auto& list = std::get<ListResult>(std::get<JobResult>(reply.body));
  list.items[0].native_id = std::string(kMaxNativeIdBytes, 'x');
  list.next_page_token = std::string(kMaxPageTokenBytes, 'x');
  CHECK(decode<JobReply>(encode(reply)).has_value());
  list.next_page_token += 'x';
  CHECK(problem_of<JobReply>(encode(reply)) == "ListResult.nextPageToken: too long");
  list.items[0].native_id += 'x';
  CHECK(problem_of<JobReply>(encode(reply)) == "Item.nativeId: too long");
  list.items[0].native_id.clear();
  CHECK(problem_of<JobReply>(encode(reply)) == "Item.nativeId: empty");

  auto job = sample<Job>("read");
  job.operation = ReadJob{};
  CHECK(problem_of<Job>(encode(job)) == "ReadJob.nativeIds: empty");
  job.operation = ReadJob{std::vector<std::string>(kMaxReadBatch + 1, "id")};
  CHECK(problem_of<Job>(encode(job)) == "ReadJob.nativeIds: too many");
  reply.body = JobResult{ReadResult{std::vector<ReadItem>(kMaxReadBatch + 1, Error{})}};
  CHECK(problem_of<JobReply>(encode(reply)) == "ReadResult.items: too many");

  auto manifest = sample<Manifest>("small");
  manifest.types.resize(kMaxTypes + 1);
  CHECK(problem_of<Manifest>(encode(manifest)) == "Manifest.types: too many");

  reply = sample<JobReply>("list");
  auto& page = std::get<ListResult>(std::get<JobResult>(reply.body));
  page.items[0].uid = std::string(kMaxNativeIdBytes, 'x');
  CHECK(decode<JobReply>(encode(reply)).has_value());
  page.items[0].uid += 'x';
  CHECK(problem_of<JobReply>(encode(reply)) == "Item.uid: too long");
  MutationResult done;
  done.request_id = std::string(kMaxNativeIdBytes + 1, 'x');
  reply.body = JobResult{done};
  CHECK(problem_of<JobReply>(encode(reply)) == "MutationResult.requestId: too long");
  done = {};
  done.uid = std::string(kMaxNativeIdBytes + 1, 'x');
  reply.body = JobResult{done};
  CHECK(problem_of<JobReply>(encode(reply)) == "MutationResult.uid: too long");
  reply.body = JobResult{InspectResult{std::string(4097, 'x'), {}, {}}};
  CHECK(problem_of<JobReply>(encode(reply)) == "InspectResult.system: too long");
  reply.body = JobResult{InspectResult{{}, {}, {std::string(257, 'x')}}};
  CHECK(problem_of<JobReply>(encode(reply)) == "InspectResult.types: too long");

  for (const auto& [index, count] : {std::pair{0U, 0U}, {0U, 1U}, {2U, 2U}, {0U, 4097U}}) {
    reply.body = Part{index, count, "x"};
    CHECK(problem_of<JobReply>(encode(reply)).substr(0, 5) == "Part.");
  }

  auto announcement = sample<Announcement>("first");
  for (const double rate : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    announcement.max_requests_per_second = rate;
    CHECK(problem_of<Announcement>(encode(announcement)) == "Announcement.maxRequestsPerSecond: not a rate");
  }
}

TEST_CASE("lists of names are bounded in number and in bytes", "[codec]") {
  auto announcement = sample<Announcement>("first");
  auto answer = sample<AnnouncementReply>("accepted");
  announcement.features = answer.features = std::vector<std::string>(64, std::string(256, 'x'));
  CHECK((decode<Announcement>(encode(announcement)).value() == announcement));
  CHECK((decode<AnnouncementReply>(encode(answer)).value() == answer));
  announcement.features[63] += 'x';
  answer.features[63] += 'x';
  CHECK(problem_of<Announcement>(encode(announcement)) == "Announcement.features: too long");
  CHECK(problem_of<AnnouncementReply>(encode(answer)) == "AnnouncementReply.features: too long");
  announcement.features.assign(65, "x");
  answer.features.assign(65, "x");
  CHECK(problem_of<Announcement>(encode(announcement)) == "Announcement.features: too many");
  CHECK(problem_of<AnnouncementReply>(encode(answer)) == "AnnouncementReply.features: too many");
}

TEST_CASE("no list of a manifest or an inspection is as long as a message has room for", "[codec]") {
  const auto manifest = [](const std::function<void(Manifest&)>& change) {
    auto changed = sample<Manifest>("small");
    changed.types.resize(1);
    change(changed);
    return problem_of<Manifest>(encode(changed));
  };
  CHECK(manifest([](auto& m) { m.filters.resize(4096); }) == "none");
  CHECK(manifest([](auto& m) { m.filters.resize(4097); }) == "Manifest.filters: too many");
  CHECK(manifest([](auto& m) { m.functions.resize(4097); }) == "Manifest.functions: too many");
  CHECK(manifest([](auto& m) { m.types[0].parent_parameters.resize(65); }) ==
        "TypeDescriptor.parentParameters: too many");
  CHECK(manifest([](auto& m) { m.types[0].operations.resize(65); }) == "TypeDescriptor.operations: too many");
  CHECK(manifest([](auto& m) { m.types[0].examples.resize(257); }) == "TypeDescriptor.examples: too many");
  const auto inspected = [](MatchFilter filter) {
    auto reply = sample<JobReply>("busy");
    reply.body = JobResult{InspectResult{{}, {std::move(filter)}, {}}};
    return problem_of<JobReply>(encode(reply));
  };
  CHECK(inspected({std::vector<std::string>(4096), std::vector<Condition>(256), {}}) == "none");
  CHECK(inspected({std::vector<std::string>(4097), {}, {}}) == "MatchFilter.types: too many");
  CHECK(inspected({{}, std::vector<Condition>(257), {}}) == "MatchFilter.conditions: too many");
  CHECK(inspected({{}, {TagMatch{std::vector<std::string>(257), {}}}, {}}) == "TagMatch.keys: too many");
  auto reply = sample<JobReply>("busy");
  reply.body = JobResult{InspectResult{{}, std::vector<MatchFilter>(4097), {}}};
  CHECK(problem_of<JobReply>(encode(reply)) == "InspectResult.filters: too many");
  reply.body = JobResult{InspectResult{{}, {}, std::vector<std::string>(4097)}};
  CHECK(problem_of<JobReply>(encode(reply)) == "InspectResult.types: too many");
  reply.body = JobResult{ListResult{{}, {}, std::vector<Problem>(100'001), 0}};
  CHECK(problem_of<JobReply>(encode(reply)) == "ListResult.problems: too many");
}

TEST_CASE("content that many pointers share cannot blow a message up", "[codec]") {
  // One id of 16 KiB that stands a thousand times in the list: read one by one they are 16 MiB.
  capnp::MallocMessageBuilder message(8192);
  auto root = message.initRoot<wire::Job>();
  auto ids = root.getOperation().initRead().initNativeIds(1000);
  ids.set(999, std::string(kMaxNativeIdBytes, 'x').c_str());
  root.setFleet("f");
  root.setId("j");
  root.setToken("t");
  root.setNamespace("PG");
  root.setPool("default");
  root.initTarget().setId("i");
  const auto flat = capnp::messageToFlatArray(message);
  Bytes bytes(flat.asChars().begin(), flat.asChars().size());
  CHECK(problem_of<Job>(bytes) == "ReadJob.nativeIds: empty");
  // The list's pointers are consecutive words; an offset grows by one for each word that a pointer stands earlier.
  constexpr std::uint64_t kTextOfIdBytes = (std::uint64_t{kMaxNativeIdBytes} + 1) << 35 | std::uint64_t{2} << 32 | 1;
  std::vector<std::uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const auto last = std::find_if(words.rbegin(), words.rend(), [](std::uint64_t word) {
    return (word & ~std::uint64_t{0xffff'fffc}) == kTextOfIdBytes;
  });
  REQUIRE(last != words.rend());
  const auto position = static_cast<std::size_t>(words.rend() - last) - 1;
  for (std::size_t back = 1; back < 1000; ++back) words[position - back] = words[position] + (back << 2);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  CHECK_THAT(problem_of<Job>(bytes), Catch::Contains("traversal limit"));
}

}  // namespace muster::testing
