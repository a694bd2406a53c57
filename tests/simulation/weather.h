#pragma once

#include <optional>

#include "muster/worker.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

/// Things in a page of the system's, at most.
inline constexpr std::size_t kPage = 7;

/// What is the matter with the system behind the target, for all calls alike.
struct Weather {
  double error_rate = 0;    // share of reads that fail
  bool outage = false;      // nothing is answered
  bool throttling = false;  // most calls are one too many
  bool gaps = false;        // some listings leave something out, and say so

  /// Why a call fails before anything has come of it.
  [[nodiscard]] std::optional<Error> trouble(Random& random) const {
    if (outage) return unavailable("out of order");
    if (throttling && random.below(4) > 0) return throttled("too many calls", Millis(random.below(1500)));
    return std::nullopt;
  }
  /// Leaves something out of a page now and then.
  void thin_out(ListPage& page, Random& random) const {
    if (!gaps || page.items.empty() || random.below(12) > 0) return;
    const auto gone = page.items.begin() + static_cast<std::ptrdiff_t>(random.below(page.items.size()));
    page.problems.push_back({gone->native_id, unavailable("not to be looked at")});
    page.items.erase(gone);
  }
  [[nodiscard]] std::optional<Error> trouble_of_read(Random& random) const {
    if (auto error = trouble(random)) return error;
    if (random.below(1000) < static_cast<std::uint64_t>(error_rate * 1000)) return unavailable("a hiccup");
    return std::nullopt;
  }
};

}  // namespace muster::sim
