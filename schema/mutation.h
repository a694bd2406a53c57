#pragma once

/// Marks a place where the product can be made wrong on purpose: `if (ready && !MUSTER_MUTATION("do-not-wait"))`. It is
/// false and costs nothing, but in the build that proves that the simulator notices what goes wrong
/// (tests/simulation/mutations.cpp says what each name breaks); there it is whether that name was chosen.
#ifdef MUSTER_MUTATIONS
namespace muster {
extern bool any_mutation;  // whether one was chosen
bool mutated(const char* name);
}  // namespace muster
#define MUSTER_MUTATION(name) (::muster::any_mutation && ::muster::mutated(name))
#else
#define MUSTER_MUTATION(name) false
#endif
