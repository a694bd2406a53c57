#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/parts.h"
#include "worker_sdk/bus/clock.h"

namespace muster {

/// How long the parts of a late result wait for the others: they are all sent again much sooner.
inline constexpr Millis kKeepLateParts{60'000};
struct LatePartsLimits {
  std::size_t results = 256;
  std::size_t bytes = 256ULL << 20U;
};

/// Results in parts that no lease waits for. Bounded: what is too much goes, of the namespace that has most of it what
/// was heard of longest ago; it comes again. Thread: loop thread only.
class LateParts {
 public:
  explicit LateParts(LatePartsLimits limits = {}) : limits_(limits) {}

  struct Ended {
    Bytes whole;         // empty: the parts do not belong together
    std::string ack_to;  // as the last part said, which may have come before this one
  };
  /// `ns`       whose subject the part came on: it is put together with parts of the same only
  /// `ack_to`   where the answer to the whole is waited for; empty: another part says it
  /// returns    what has ended with this part
  std::optional<Ended> add(std::string_view ns, const Token& token, Part part, const std::string& ack_to,
                           TimePoint now);

  /// Forgets those of which no part has come for kKeepLateParts.
  void expire(TimePoint now);
  [[nodiscard]] bool empty() const { return results_.empty(); }

 private:
  struct Pending {
    PartAssembler parts;
    std::string ack_to;
    TimePoint heard;
  };
  using Results = std::map<std::pair<std::string, Token>, Pending>;  // by namespace and token

  void make_room();

  LatePartsLimits limits_;
  Results results_;
};

}  // namespace muster
