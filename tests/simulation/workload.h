#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/properties.h"
#include "worker_sdk/bus/clock.h"

namespace muster::sim {

/// One thing that a user asks for.
struct Wish {
  enum class Kind : std::uint8_t { kApply, kCancel };
  Kind kind = Kind::kApply;
  Millis at{0};  // from the start
  std::string stack;
  Json request;         // of apply
  Millis looked_at{0};  // how long its plan is before it is applied; 0: it is applied at once
  bool force = false;   // of cancel: the command that was begun last
};

/// What users want of the fleet, drawn from a seed: declarations of two stacks, again and again in other forms.
/// A stack's names have lasting types; the name in a resource's properties says which stack and name it is of.
/// Gives some resources a write-only value.
void add_notes(std::vector<Wish>& wishes, Random& random);
std::vector<Wish> draw_wishes(Random& random);
/// Declares children in some of the objects that are wished for.
void add_children(std::vector<Wish>& wishes, Random& random);

/// Adds SIM::Nest: the first lies in nothing, the others in earlier ones, not always in the same.
void add_nests(std::vector<Wish>& wishes, Random& random);

/// Gives some of those values by reference to a variable of the workers' environment.
void add_secrets(std::vector<Wish>& wishes, Random& random);
/// What a resource declares as its write-only value: as text, or as what the variable holds that it refers to.
Json note_in(const Json& resource);

/// Others want nearly the same, right after: the same once more, a patch of it, other values, one thing less.
void add_crowds(std::vector<Wish>& wishes, Random& random);

/// Some plan first, and apply that a while later.
void add_plans(std::vector<Wish>& wishes, Random& random);

/// An apply of what `wish` declares, all of the stack.
Json reconciled(const Json& request);
Json destroyed(const std::string& stack);

}  // namespace muster::sim
