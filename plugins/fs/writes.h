#pragma once

#include "change.h"
#include "muster/worker.h"

/// Declared changes of a target.
namespace muster::fs {

Result<Mutation> create(Kind kind, Sweeper& sweeper, const CreateRequest& request, JobContext& context);
Result<Mutation> update(Kind kind, Sweeper& sweeper, const UpdateRequest& request, JobContext& context);
Result<Mutation> remove(Kind kind, Sweeper& sweeper, const DeleteRequest& request, JobContext& context);

}  // namespace muster::fs
