#include "coordinator/late_parts.h"

#include <algorithm>

namespace muster {

std::optional<LateParts::Ended> LateParts::add(std::string_view ns, const Token& token, Part part,
                                               const std::string& ack_to, TimePoint now) {
  const auto it = results_.try_emplace({std::string(ns), token}).first;
  auto& result = it->second;
  result.heard = now;
  if (!ack_to.empty()) result.ack_to = ack_to;
  auto whole = result.parts.add(std::move(part));
  if (whole && !*whole) {
    make_room();
    return std::nullopt;
  }
  Ended ended{whole ? std::move(**whole) : Bytes(), std::move(result.ack_to)};
  results_.erase(it);
  return ended;
}

void LateParts::make_room() {
  struct Taken {
    std::size_t results = 0, bytes = 0;
    Results::iterator oldest;
  };
  for (;;) {
    std::size_t bytes = 0;
    std::map<std::string_view, Taken> taken;  // by namespace
    for (auto it = results_.begin(); it != results_.end(); ++it) {
      auto& of_namespace = taken[it->first.first];
      if (of_namespace.results == 0 || it->second.heard < of_namespace.oldest->second.heard) of_namespace.oldest = it;
      ++of_namespace.results;
      of_namespace.bytes += it->second.parts.bytes();
      bytes += it->second.parts.bytes();
    }
    const bool too_many = results_.size() > limits_.results;
    if (!too_many && bytes <= limits_.bytes) return;
    const auto most = std::ranges::max_element(
        taken, {}, [&](const auto& entry) { return too_many ? entry.second.results : entry.second.bytes; });
    results_.erase(most->second.oldest);
  }
}

void LateParts::expire(TimePoint now) {
  std::erase_if(results_, [&](const auto& entry) { return now - entry.second.heard > kKeepLateParts; });
}

}  // namespace muster
