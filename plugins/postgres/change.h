#pragma once

#include "muster/job.h"
#include "object.h"

namespace muster::postgres {

// A change is one transaction: what PostgreSQL made of it is read back before the commit, and where that is not what is
// declared, nothing of it stays. Only databases are made and dropped outside of one, as PostgreSQL wants it.
// Errors: kInvalidRequest also where a value is declared in other words than the catalogs give it back, with those.

/// errors   kAlreadyExists, kNotFound (a parent is missing), ...
Result<Mutation> create(const Kind& kind, const CreateRequest& request, JobContext& context);
/// Changes what differs between `prior` and `desired`, and nothing else.
/// errors   kConflict (the precondition, or somebody else at the same time), kNotFound, ...
Result<Mutation> update(const Kind& kind, const UpdateRequest& request, JobContext& context);
/// errors   kConflict (the precondition, or others depend on it), ...
Result<Mutation> remove(const Kind& kind, const DeleteRequest& request, JobContext& context);

}  // namespace muster::postgres
