#include "coordinator/late_looks.h"

#include <algorithm>
#include <utility>

namespace muster {

bool LateLooks::add(std::string_view ns, const std::string& target, const std::string& type) {
  auto& named = named_[std::string(ns)];
  named.targets[type].insert(target);
  if (named.told < kMaxLateTold) {
    ++named.told;
    return true;
  }
  ++named.left_out;
  ++left_out_;
  return false;
}

std::vector<LateLooks::Due> LateLooks::take(TimePoint now) {
  std::vector<Due> all;
  for (auto it = named_.begin(); it != named_.end();) {
    auto& [ns, named] = *it;
    if (now < named.not_before) {
      ++it;
      continue;
    }
    if (named.targets.empty()) {
      it = named_.erase(it);
      continue;
    }
    auto& due = all.emplace_back();
    due.ns = ns;
    for (const auto& [type, targets] : named.targets) due.parts.push_back({{targets.begin(), targets.end()}, {type}});
    due.left_out = named.left_out;
    named = {.not_before = now + kLateLookPause};
    ++it;
  }
  return all;
}

TimePoint LateLooks::next_due() const {
  auto due = TimePoint::max();
  for (const auto& [ns, named] : named_) {
    if (!named.targets.empty()) due = std::min(due, named.not_before);
  }
  return due;
}

}  // namespace muster
