#include <catch2/catch.hpp>

#include <cstring>

#include "schema/codec.h"
#include "wire/samples.h"
#include "wire/wire_types.h"

namespace muster::testing {
namespace {

JobReply list_reply(std::size_t items) {
  ListResult list;
  for (std::size_t i = 0; i < items; ++i) {
    list.items.push_back({"id-" + std::to_string(i), "", R"({"blob":")" + std::string(600, 'x') + R"("})"});
  }
  return {FleetId{"f"}, JobId{"j"}, Token{"t"}, WorkerId{"w"}, 1, 1, JobResult{std::move(list)}};
}

std::uint32_t segments_of(const Bytes& message) {
  std::uint32_t less_one = 0;
  std::memcpy(&less_one, message.data(), sizeof less_one);
  return less_one + 1;
}

}  // namespace

TEMPLATE_TEST_CASE("every message comes back as it was", "[codec]", MUSTER_MESSAGES) {
  for (const auto& [variant, value] : samples<TestType>()) {
    CAPTURE(variant);
    const auto decoded = decode<TestType>(encode(value));
    REQUIRE(decoded.has_value());
    CHECK((*decoded == value));
  }
}

TEMPLATE_TEST_CASE("bytes need not be aligned", "[codec]", MUSTER_MESSAGES) {
  const auto value = samples<TestType>().front().value;
  for (std::size_t offset = 1; offset < 8; ++offset) {
    const auto shifted = std::string(offset, '#') + encode(value);
    const auto decoded = decode<TestType>(std::string_view(shifted).substr(offset));
    REQUIRE(decoded.has_value());
    CHECK((*decoded == value));
  }
}

TEST_CASE("a large reply is one segment", "[codec]") {
  const auto reply = list_reply(5000);
  const auto bytes = encode(reply);
  CHECK(segments_of(bytes) == 1);
  CHECK(bytes.size() > 5000 * 600);
  const auto decoded = decode<JobReply>(bytes);
  REQUIRE(decoded.has_value());
  CHECK((*decoded == reply));
}

TEST_CASE("a message of several segments is read like any other", "[codec]") {
  auto job = samples<Job>().front().value;
  job.operation = CreateJob{"key", {"\"" + std::string(300'000, 'x') + "\"", {}}, std::nullopt};
  const auto bytes = encode(job);
  CHECK(segments_of(bytes) > 1);
  const auto decoded = decode<Job>(bytes);
  REQUIRE(decoded.has_value());
  CHECK((*decoded == job));
}

TEST_CASE("the cut parts of an encoded reply are the reply", "[codec]") {
  const auto reply = list_reply(20);
  const auto whole = encode(reply);
  const std::size_t step = whole.size() / 3 + 1;  // no multiple of a word
  Bytes joined;
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto envelope = reply;
    envelope.body = Part{i, 3, whole.substr(i * step, step)};
    const auto part = decode<JobReply>(encode(envelope));
    REQUIRE(part.has_value());
    CHECK((*part == envelope));
    joined += std::get<Part>(part->body).data;
  }
  const auto decoded = decode<JobReply>(joined);
  REQUIRE(decoded.has_value());
  CHECK((*decoded == reply));
}

TEST_CASE("durations that a field cannot hold become the nearest that it can", "[codec]") {
  auto job = samples<Job>().front().value;
  job.lease = Millis{-5};
  job.deadline = std::chrono::hours{24 * 365};
  const auto decoded = decode<Job>(encode(job));
  REQUIRE(decoded.has_value());
  CHECK(decoded->lease == Millis{0});
  CHECK(decoded->deadline == Millis{0xffff'ffff});
}

TEST_CASE("properties over the bound leave the other items of the message readable", "[codec]") {
  auto reply = list_reply(2);
  auto& items = std::get<ListResult>(std::get<JobResult>(reply.body)).items;
  items[0].properties = R"({"blob":")" + std::string(kMaxPropertiesBytes, 'x') + R"("})";
  const auto decoded = decode<JobReply>(encode(reply));
  REQUIRE(decoded.has_value());
  CHECK((*decoded == reply));
}

TEST_CASE("codes that never travel are sent as an internal failure", "[codec]") {
  auto reply = list_reply(0);
  reply.body = JobResult{Error{Errc::kContract, "Item.nativeId: empty", {}, 0}};
  const auto decoded = decode<JobReply>(encode(reply));
  REQUIRE(decoded.has_value());
  CHECK(
      (std::get<JobResult>(decoded->body) == JobResult{Error{Errc::kInternalFailure, "Item.nativeId: empty", {}, 0}}));
}

}  // namespace muster::testing
