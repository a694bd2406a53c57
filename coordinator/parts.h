#pragma once

#include <optional>
#include <vector>

#include "schema/messages.h"

namespace muster {

/// Puts a reply together that came in numbered parts. Bounded: 64 MiB.
class PartAssembler {
 public:
  /// The whole once its last part is there, nothing before. A part that comes again takes the place of the one before:
  /// a result is sent again, all of it, until it is known to be taken.
  /// errors   kMalformed: a part beyond the count, or of another count; kTooLarge
  Result<std::optional<Bytes>> add(Part part);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::vector<std::optional<Bytes>> parts_;
  std::size_t have_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace muster
