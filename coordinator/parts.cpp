#include "coordinator/parts.h"

namespace muster {
namespace {

constexpr std::size_t kMaxBytes = 64ULL << 20;

}  // namespace

Result<std::optional<Bytes>> PartAssembler::add(Part part) {
  if (parts_.empty() && part.count <= kMaxParts) parts_.resize(part.count);
  if (part.count != parts_.size() || part.index >= parts_.size()) {
    return Error{
        Errc::kMalformed,
        "part " + std::to_string(part.index) + " of " + std::to_string(part.count) + " does not belong to the others",
        {},
        0};
  }
  auto& place = parts_[part.index];
  const auto before = place ? place->size() : 0;
  if (bytes_ - before + part.data.size() > kMaxBytes) {
    return Error{Errc::kTooLarge, "a reply of more than 64 MiB", {}, 0};
  }
  bytes_ = bytes_ - before + part.data.size();
  if (!place) ++have_;
  place = std::move(part.data);
  if (have_ < parts_.size()) return std::optional<Bytes>();

  Bytes whole;
  whole.reserve(bytes_);
  for (const auto& data : parts_) whole += *data;
  return std::optional(std::move(whole));
}

}  // namespace muster
