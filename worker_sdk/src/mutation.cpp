#include <xxhash.h>

#include <array>
#include <cstdio>

#include "muster/job.h"

namespace muster {

Mutation::Mutation(Resource resource) : resource_(std::move(resource)) {}

Result<Mutation> Mutation::of(Result<Resource> read) {
  if (!read) return read.error();
  return Mutation(std::move(*read));
}

Mutation Mutation::deleted() {
  Mutation done;
  done.gone_ = true;
  return done;
}

Mutation Mutation::in_progress(std::string request_id, std::string native_id, Millis retry_after) {
  Mutation going;
  going.status_ = MutationStatus::kInProgress;
  going.request_id_ = std::move(request_id);
  going.retry_after_ = retry_after;
  going.resource_.native_id = std::move(native_id);
  return going;
}

bool violates(const Precondition& precondition, const Resource& current) {
  if (!precondition.uid.empty() && precondition.uid != current.uid) return true;
  if (precondition.state_hash.empty()) return false;
  const std::string& text = current.properties.text();
  const auto hash = XXH3_128bits(text.data(), text.size());
  std::array<char, 33> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return precondition.state_hash != hex.data();
}

}  // namespace muster
