#pragma once

#include "object.h"

namespace muster::nats {

// JetStream has no compare-and-set for configs: that an object is not there yet, or is as the precondition says, is
// asked right before the change. An answer that lacks something of what was declared is kNotStabilized: this server
// does not know it.

/// errors   kAlreadyExists also for what is there just as declared, which the server alone would take for made
Result<Mutation> create(const BusAccess& own, const Kind& kind, const CreateRequest& request, JobContext& context);
/// Changes what differs between `prior` and `desired`, and leaves alone what it does not know.
Result<Mutation> update(const BusAccess& own, const Kind& kind, const UpdateRequest& request, JobContext& context);
Result<Mutation> remove(const BusAccess& own, const Kind& kind, const DeleteRequest& request, JobContext& context);

}  // namespace muster::nats
