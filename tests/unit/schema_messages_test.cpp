#include <catch2/catch.hpp>

#include <string>

#include "schema/messages.h"
#include "schema/utf8.h"

namespace muster {
namespace {

bool same(ErrorTraits traits, Retry retry, Applied applied) {
  return traits.retry == retry && traits.applied == applied;
}

}  // namespace

TEST_CASE("the error table is that of the contract", "[errors]") {
  struct Row {
    Errc code;
    std::string_view name;
    Retry retry;
    Applied applied;
  };
  const Row rows[] = {
      {Errc::kNotFound, "NOT_FOUND", Retry::kNever, Applied::kNotApplied},
      {Errc::kAlreadyExists, "ALREADY_EXISTS", Retry::kNever, Applied::kSettle},
      {Errc::kInvalidRequest, "INVALID_REQUEST", Retry::kNever, Applied::kNotApplied},
      {Errc::kUnsupported, "UNSUPPORTED", Retry::kNever, Applied::kNotApplied},
      {Errc::kAccessDenied, "ACCESS_DENIED", Retry::kNever, Applied::kNotApplied},
      {Errc::kLimit, "LIMIT", Retry::kNever, Applied::kNotApplied},
      {Errc::kThrottling, "THROTTLING", Retry::kYes, Applied::kNotApplied},
      {Errc::kServiceUnavailable, "SERVICE_UNAVAILABLE", Retry::kYes, Applied::kUnknown},
      {Errc::kNotStabilized, "NOT_STABILIZED", Retry::kAfterReread, Applied::kUnknown},
      {Errc::kConflict, "CONFLICT", Retry::kAfterReread, Applied::kNotApplied},
      {Errc::kInternalFailure, "INTERNAL_FAILURE", Retry::kFewTimes, Applied::kUnknown},
      {Errc::kNetwork, "NETWORK", Retry::kYes, Applied::kUnknown},
      {Errc::kTimeout, "TIMEOUT", Retry::kYes, Applied::kUnknown},
      {Errc::kCancelled, "CANCELLED", Retry::kNever, Applied::kUnknown},
      {Errc::kTargetChanged, "TARGET_CHANGED", Retry::kNever, Applied::kNotApplied},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    CHECK(errc_name(row.code) == row.name);
    CHECK(same(error_traits(row.code), row.retry, row.applied));
  }
}

TEST_CASE("codes that stay in one process have names, and are never retried by the table", "[errors]") {
  CHECK(errc_name(Errc::kMalformed) == "MALFORMED");
  CHECK(errc_name(Errc::kDisconnected) == "DISCONNECTED");
  CHECK(errc_name(Errc::kNoResponders) == "NO_RESPONDERS");
  CHECK(errc_name(Errc::kTooLarge) == "TOO_LARGE");
  CHECK(errc_name(Errc::kIncompatible) == "INCOMPATIBLE");
  CHECK(errc_name(Errc::kStoreUnavailable) == "STORE_UNAVAILABLE");
  CHECK(errc_name(Errc::kNoWorker) == "NO_WORKER");
  CHECK(errc_name(Errc::kContract) == "CONTRACT");
  CHECK(same(error_traits(Errc::kDisconnected), Retry::kNever, Applied::kUnknown));
  CHECK(errc_name(static_cast<Errc>(16)).empty());
  CHECK(errc_name(static_cast<Errc>(0)).empty());
}

TEST_CASE("operations have names, and some of them act", "[messages]") {
  const auto check = [](JobOperation operation, std::string_view name, bool mutates) {
    CHECK(operation_name(operation) == name);
    CHECK(is_mutation(operation) == mutates);
  };
  check(ListJob{}, "list", false);
  check(ReadJob{}, "read", false);
  check(CreateJob{}, "create", true);
  check(UpdateJob{}, "update", true);
  check(DeleteJob{}, "delete", true);
  check(StatusJob{}, "status", false);
  check(InspectJob{}, "inspect", false);
  const auto call = [](CallKind kind) {
    CallJob job;
    job.kind = kind;
    return job;
  };
  for (const auto kind :
       {CallKind::kCheck, CallKind::kDiff, CallKind::kTransform, CallKind::kContribute, CallKind::kSelect}) {
    check(call(kind), "call", false);
  }
  for (const auto kind : {CallKind::kInvoke, CallKind::kAct, CallKind::kRecover}) check(call(kind), "call", true);
}

TEST_CASE("UTF-8 is checked by the standard's table", "[utf8]") {
  for (const auto* good : {"", "plain", "größe", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(valid_utf8(good));
  }
  for (const auto* bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe0\xa0", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82\x41"}) {
    CAPTURE(bad);
    CHECK_FALSE(valid_utf8(bad));
    // Wherever it stands among ASCII, which is looked at eight bytes at a time.
    for (std::size_t before = 0; before < 17; ++before) {
      CHECK_FALSE(valid_utf8(std::string(before, 'a') + bad));
      CHECK_FALSE(valid_utf8(std::string(before, 'a') + bad + std::string(9, 'b')));
    }
  }
  CHECK(valid_utf8(std::string_view("a\0b", 3)));
}

}  // namespace muster
