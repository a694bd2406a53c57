#include "support/store_fixture.h"

#include "coordinator/sqlite_store.h"

namespace muster::test {

StoreFixture::StoreFixture() {
  reopen();
  target = make_target("t");
  store().put_target(target).value();
  tables = store().scan(target.id, "PG::Table").value().id;
  schemas = store().scan(target.id, "PG::Schema").value().id;
  store().commit().value();
}

void StoreFixture::reopen() {
  store_.reset();
  store_ = std::move(open_sqlite_store((directory_.path / "store.db").string(), clock_, random_).value());
}

WallTime StoreFixture::at(double seconds) {
  return WallTime{std::chrono::seconds(1'700'000'000)} +
         std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(seconds));
}

RowId StoreFixture::insert(RowId scan, std::string_view native_id, std::string_view properties, double seconds,
                           RowId parent, std::string_view uid) {
  return store()
      .insert({.scan = scan,
               .native_id = native_id,
               .uid = uid,
               .label = native_id,
               .properties = properties,
               .content = hash128(properties),
               .parent = parent,
               .at = at(seconds)})
      .value()
      .row;
}

void StoreFixture::change(RowId row, std::string_view properties, std::string_view patch, double seconds) {
  const auto before = one(row);
  store().change(row, properties, hash128(properties), before.label, before.uid, patch, at(seconds)).value();
}

ResourceRecord StoreFixture::one(RowId row) {
  return std::move(store().one(row).value().value());
}

std::vector<Shown> StoreFixture::query(const ResourceQuery& query) {
  std::vector<Shown> found;
  store()
      .query(query,
             [&](const ResourceView& view) {
               found.push_back({view.row, std::string(view.native_id), std::string(view.label),
                                std::string(view.properties), view.state});
               return true;
             })
      .value();
  return found;
}

std::vector<IndexEntry> StoreFixture::index(RowId scan) {
  std::vector<IndexEntry> entries;
  store().load_index(scan, [&](const IndexEntry& entry) { entries.push_back(entry); }).value();
  return entries;
}

std::uint64_t StoreFixture::append(std::string_view what, double seconds, std::string_view data) {
  return store()
      .append_event(
          {.at = at(seconds), .ns = "PG", .what = std::string(what), .subject = "s", .data = std::string(data)})
      .value();
}

TargetRow StoreFixture::make_target(std::string_view name) {
  TargetRow row;
  row.id = TargetId(make_ulid(clock_.wall(), random_));
  row.name = name;
  row.ns = "PG";
  return row;
}

}  // namespace muster::test
