#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/store.h"
#include "support/scratch.h"
#include "worker_sdk/testing/fake_clock.h"

namespace muster::test {

/// Copies of what a ResourceView or HistoryEntry shows.
struct Shown {
  RowId row = 0;
  std::string native_id, label, properties;
  ResourceState state = ResourceState::kPresent;
};

/// A store with one target `t` and two scans of it, and short ways to write and read rows. Tests of the Store interface
/// use nothing but this, so that they hold for every implementation.
class StoreFixture {
 public:
  StoreFixture();

  Store& store() { return *store_; }
  /// Closes the store and opens it again from what is durable.
  void reopen();

  /// `seconds` after the first moment of the test.
  static WallTime at(double seconds);
  RowId insert(RowId scan, std::string_view native_id, std::string_view properties = "{}", double seconds = 0,
               RowId parent = 0, std::string_view uid = {});
  void change(RowId row, std::string_view properties, std::string_view patch, double seconds);
  ResourceRecord one(RowId row);
  std::vector<Shown> query(const ResourceQuery& query = {});
  std::vector<IndexEntry> index(RowId scan);
  std::uint64_t append(std::string_view what, double seconds = 0, std::string_view data = "{}");
  TargetRow make_target(std::string_view name);

  TargetRow target;
  RowId tables = 0;  // scans of `target`
  RowId schemas = 0;

 private:
  Scratch directory_;
  FakeClock clock_;
  SeededRandom random_{42};
  std::unique_ptr<Store> store_;
};

}  // namespace muster::test
