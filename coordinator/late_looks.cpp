#include "coordinator/late_looks.h"

#include <algorithm>
#include <iterator>
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

void LateLooks::add_at(TimePoint at, std::string_view ns, const std::string& target, const std::string& type) {
  const auto [it, is_first] = named_[std::string(ns)].waiting.try_emplace({type, target}, Wait{at, at});
  it->second.last = std::max(it->second.last, at);
}

/// Those that have waited for as long as they were to.
void LateLooks::take_up(Named& named, TimePoint now) {
  for (auto it = named.waiting.begin(); it != named.waiting.end();) {
    auto& [part, wait] = *it;
    if (wait.next <= now) named.targets[part.first].insert(part.second);
    if (wait.last <= now) {
      it = named.waiting.erase(it);
      continue;
    }
    if (wait.next <= now) wait.next = wait.last;
    ++it;
  }
}

std::vector<LateLooks::Due> LateLooks::take(TimePoint now) {
  std::vector<Due> all;
  for (auto it = named_.begin(); it != named_.end();) {
    auto& [ns, named] = *it;
    if (now < named.not_before) {
      ++it;
      continue;
    }
    take_up(named, now);
    if (named.targets.empty()) {
      it = named.waiting.empty() ? named_.erase(it) : std::next(it);
      continue;
    }
    auto& due = all.emplace_back();
    due.ns = ns;
    for (const auto& [type, targets] : named.targets) due.parts.push_back({{targets.begin(), targets.end()}, {type}});
    due.left_out = named.left_out;
    named = {.not_before = now + kLateLookPause, .waiting = std::move(named.waiting)};
    ++it;
  }
  return all;
}

TimePoint LateLooks::next_due() const {
  auto due = TimePoint::max();
  for (const auto& [ns, named] : named_) {
    if (!named.targets.empty()) due = std::min(due, named.not_before);
    for (const auto& [part, wait] : named.waiting) due = std::min(due, std::max(wait.next, named.not_before));
  }
  return due;
}

}  // namespace muster
