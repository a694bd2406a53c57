#include <array>
#include <cstddef>

#include "errors.capnp.h"
#include "schema/result.h"

namespace muster {
namespace {

struct Row {
  std::string_view name;
  ErrorTraits traits;
};

constexpr std::size_t kRows = 64;  // codes are small and dense; the table has 15

static_assert(static_cast<int>(wire::Retry::AFTER_REREAD) == static_cast<int>(Retry::kAfterReread));
static_assert(static_cast<int>(wire::Applied::SETTLE) == static_cast<int>(Applied::kSettle));

/// The protocol's error table, by code; the names point into the compiled-in constant.
const std::array<Row, kRows>& rows() {
  static const std::array<Row, kRows> table = [] {
    std::array<Row, kRows> by_code{};
    for (const auto row : *wire::ERROR_TABLE) {
      const auto name = row.getName();
      by_code.at(row.getCode()) = {{name.begin(), name.size()},
                                   {static_cast<Retry>(row.getRetry()), static_cast<Applied>(row.getApplied())}};
    }
    return by_code;
  }();
  return table;
}

}  // namespace

std::string_view errc_name(Errc code) {
  switch (code) {
    case Errc::kMalformed:
      return "MALFORMED";
    case Errc::kDisconnected:
      return "DISCONNECTED";
    case Errc::kNoResponders:
      return "NO_RESPONDERS";
    case Errc::kTooLarge:
      return "TOO_LARGE";
    case Errc::kIncompatible:
      return "INCOMPATIBLE";
    case Errc::kStoreUnavailable:
      return "STORE_UNAVAILABLE";
    case Errc::kNoWorker:
      return "NO_WORKER";
    case Errc::kContract:
      return "CONTRACT";
    default: {
      const auto index = static_cast<std::size_t>(code);
      return index < kRows ? rows()[index].name : std::string_view{};
    }
  }
}

ErrorTraits error_traits(Errc code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kRows ? rows()[index].traits : ErrorTraits{};
}

}  // namespace muster
