#pragma once

#include <memory>
#include <string>

#include "coordinator/store.h"

namespace muster {

/// A Store in one SQLite file (WAL, synchronous NORMAL: what is committed survives the death of the process), locked
/// against a second process for its whole life.
/// `path`   the file, made with its folders when it is not there; `:memory:` for tests
/// errors   kStoreUnavailable: not writable, locked by another process (message names its pid), not a store;
///          kIncompatible: written by a newer version
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path, const Clock& clock, Random& random);

}  // namespace muster
