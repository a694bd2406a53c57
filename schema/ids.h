#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace muster {

/// A string that names one kind of thing only: a JobId is no WorkerId. All of them are subject tokens.
template <typename Tag>
struct Id {
  std::string value;

  Id() = default;
  explicit Id(std::string text) : value(std::move(text)) {}
  [[nodiscard]] bool empty() const { return value.empty(); }
  auto operator<=>(const Id&) const = default;
};

using FleetId = Id<struct FleetTag>;              // of a store; ULID
using CoordinatorId = Id<struct CoordinatorTag>;  // of one start of a coordinator
using WorkerId = Id<struct WorkerTag>;            // of one start of a worker
using JobId = Id<struct JobTag>;                  // ULID
using Token = Id<struct TokenTag>;                // of one dispatch; 128 random bits
using TargetId = Id<struct TargetTag>;            // ULID; survives renaming
using ResourceId = Id<struct ResourceTag>;        // ULID
using RunId = Id<struct RunTag>;                  // ULID

}  // namespace muster

template <typename Tag>
struct std::hash<muster::Id<Tag>> {
  std::size_t operator()(const muster::Id<Tag>& id) const noexcept { return std::hash<std::string>{}(id.value); }
};
