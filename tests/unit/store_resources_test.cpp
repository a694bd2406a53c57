// Resources of a Store: rows, states, look-ups, listings.
#include <algorithm>

#include <catch2/catch.hpp>

#include "support/store_fixture.h"

using namespace muster;
using test::StoreFixture;

TEST_CASE_METHOD(StoreFixture, "a new resource is shown with all it was given") {
  const auto parent = insert(schemas, "db.public");
  const auto inserted = store().insert({.scan = tables,
                                        .native_id = "db.public.t1",
                                        .uid = "16384",
                                        .label = "t1",
                                        .properties = R"({"name":"t1"})",
                                        .content = hash128("x"),
                                        .parent = parent,
                                        .at = at(1.5)});
  const auto row = inserted.value().row;
  store().commit().value();
  reopen();
  const auto found = one(row);
  CHECK(found.row == row);
  CHECK(found.id == inserted.value().id);
  CHECK(found.target == "t");
  CHECK(found.type == "PG::Table");
  CHECK(found.native_id == "db.public.t1");
  CHECK(found.uid == "16384");
  CHECK(found.label == "t1");
  CHECK(found.stack.empty());
  CHECK_FALSE(found.managed);
  CHECK_FALSE(found.drifted);
  CHECK(found.state == ResourceState::kPresent);
  CHECK(found.properties == R"({"name":"t1"})");
  CHECK(found.parent_type == "PG::Schema");
  CHECK(found.parent_native_id == "db.public");
  CHECK(found.first_seen == at(1.5));
  CHECK(found.last_seen == at(1.5));
  CHECK(found.changed_at == at(1.5));
  CHECK(found.version == 1);
  CHECK(found.scan == tables);
  CHECK(found.parent == parent);
  CHECK(one(parent).parent_type.empty());
}

TEST_CASE_METHOD(StoreFixture, "a record outlives its move and later writes") {
  auto record = one(insert(tables, "short", R"({"a":1})"));
  auto moved = std::move(record);
  for (int i = 0; i < 100; ++i) insert(tables, std::to_string(i), R"({"b":2})");
  CHECK(moved.native_id == "short");
  CHECK(moved.properties == R"({"a":1})");
}

TEST_CASE_METHOD(StoreFixture, "an id leads back to its row, and to no other") {
  const auto row = insert(tables, "a", "{}", 3);
  const auto id = one(row).id;
  CHECK(id.value.size() == 26);
  CHECK(store().one(id).value().value().row == row);
  CHECK(one(insert(tables, "b", "{}", 4)).id > id);  // sorts by the time of the first sight

  auto lower = id.value;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  CHECK(store().one(ResourceId(lower)).value().value().row == row);
  for (std::size_t i = 0; i < id.value.size(); ++i) {
    auto other = id.value;
    other[i] = other[i] == '1' ? '3' : '1';
    INFO(other);
    const auto found = std::move(store().one(ResourceId(other)).value());
    CHECK((!found || found->id.value == other));
  }
  for (const auto* bad : {"", "x", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "01HF7YAT00000000000000000U"}) {
    CHECK_FALSE(store().one(ResourceId(bad)).value());
  }
}

TEST_CASE_METHOD(StoreFixture, "native ids are any text, and case and blanks matter") {
  const std::vector<std::string> ids = {"a",
                                        "A",
                                        " a",
                                        "a ",
                                        "it's",
                                        "\"q\"",
                                        "new\nline",
                                        "%41",
                                        "ümlaut",
                                        "Ümlaut",
                                        "'; DROP TABLE resources; --",
                                        std::string(16384, 'x'),
                                        "日本"};
  std::vector<RowId> rows;
  for (const auto& id : ids) rows.push_back(insert(tables, id));
  store().commit().value();
  reopen();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(store().find(tables, ids[i]).value() == rows[i]);
    CHECK(store().one("t", "PG::Table", ids[i]).value().value().row == rows[i]);
    CHECK(one(rows[i]).native_id == ids[i]);
  }
  CHECK(store().find(schemas, "a").value() == 0);
  CHECK(store().find(tables, "b").value() == 0);
}

TEST_CASE_METHOD(StoreFixture, "the index of a scan holds what was written") {
  const auto parent = insert(schemas, "s");
  const auto row = insert(tables, "a", R"({"x":1})", 0, parent, "uid1");
  const auto stale = insert(tables, "b");
  store().set_stale(stale, true).value();
  store().leave(insert(tables, "c"), ResourceState::kVanished, "vanished", at(1)).value();
  store().leave(insert(tables, "d"), ResourceState::kFiltered, "filtered", at(1)).value();
  const auto missing = insert(tables, "e");
  store().leave(missing, ResourceState::kMissing, "missing", at(1)).value();
  const auto entries = index(tables);
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].row == row);
  CHECK(entries[0].key == hash128("a"));
  CHECK(entries[0].content == hash128(R"({"x":1})"));
  CHECK(entries[0].uid == hash128("uid1").low);
  CHECK(entries[0].parent == parent);
  CHECK_FALSE(entries[0].stale);
  CHECK_FALSE(entries[0].managed);
  CHECK(entries[1].row == stale);
  CHECK(entries[1].stale);
  CHECK(entries[1].uid == 0);
  CHECK(entries[2].row == missing);
  CHECK_FALSE(entries[2].stale);
  CHECK(index(schemas).size() == 1);
}

TEST_CASE_METHOD(StoreFixture, "inserting what is there adopts the row") {
  const auto row = insert(tables, "a", R"({"x":1})", 0);
  SECTION("unchanged: nothing but its parent and mark is written") {
    const auto parent = insert(schemas, "s");
    store().set_stale(row, true).value();
    CHECK(insert(tables, "a", R"({"x":1})", 5, parent) == row);
    CHECK(one(row).version == 1);
    CHECK(one(row).parent == parent);
    CHECK(one(row).state == ResourceState::kPresent);
    CHECK(store().history(row).value().size() == 1);
  }
  SECTION("changed: a version with the difference") {
    CHECK(insert(tables, "a", R"({"x":2})", 5) == row);
    CHECK(one(row).version == 2);
    CHECK(one(row).properties == R"({"x":2})");
    const auto history = store().history(row).value();
    REQUIRE(history.size() == 2);
    CHECK(history[1].cause == "changed");
    CHECK(history[1].patch == R"([{"op":"replace","path":"/x","value":2}])");
  }
  CHECK(query({.type = "PG::Table"}).size() == 1);
}

TEST_CASE_METHOD(StoreFixture, "last_seen follows the scan while the row is vouched for, and stands still after") {
  const auto row = insert(tables, "a", "{}", 1);
  auto scan = store().scan(target.id, "PG::Table").value();
  const auto complete = [&](double seconds) {
    scan.last_complete = at(seconds);
    store().put_scan(scan).value();
  };
  complete(10);
  CHECK(one(row).last_seen == at(10));
  SECTION("a row's own stale mark") {
    store().set_stale(row, true).value();
    complete(20);
    CHECK(one(row).state == ResourceState::kStale);
    CHECK(one(row).last_seen == at(10));
    store().set_stale(row, true).value();  // again: keeps the first moment
    CHECK(one(row).last_seen == at(10));
    store().set_stale(row, false).value();
    CHECK(one(row).state == ResourceState::kPresent);
    CHECK(one(row).last_seen == at(20));
  }
  SECTION("the scan's mark") {
    scan.stale = true;
    store().put_scan(scan).value();
    CHECK(one(row).state == ResourceState::kStale);
    CHECK(one(row).last_seen == at(10));
    CHECK(query({.state = ResourceState::kStale}).size() == 1);
    CHECK(query({.state = ResourceState::kPresent}).empty());
  }
  SECTION("a row that left") {
    store().leave(row, ResourceState::kVanished, "vanished", at(20)).value();
    complete(20);
    CHECK(one(row).state == ResourceState::kVanished);
    CHECK(one(row).last_seen == at(10));
    CHECK(one(row).changed_at == at(20));
  }
  SECTION("a change is a sight") {
    store().set_stale(row, true).value();
    change(row, R"({"a":1})", R"([{"op":"add","path":"/a","value":1}])", 15);
    CHECK(one(row).state == ResourceState::kPresent);
    CHECK(one(row).last_seen == at(15));
  }
}

TEST_CASE_METHOD(StoreFixture, "what is told again without its uid keeps it, unless it was gone") {
  const auto tell = [&](const std::string& uid, const std::string& properties) {
    return store()
        .insert({.scan = tables,
                 .native_id = "a",
                 .uid = uid,
                 .label = "a",
                 .properties = properties,
                 .content = hash128(properties),
                 .at = at(1)})
        .value()
        .row;
  };
  const auto row = tell("7", R"({"n":1})");
  CHECK(tell("", R"({"n":2})") == row);
  CHECK(one(row).uid == "7");
  store().leave(row, ResourceState::kVanished, "vanished", at(2)).value();
  CHECK(tell("", R"({"n":2})") == row);
  CHECK(one(row).uid.empty());
}

TEST_CASE_METHOD(StoreFixture, "a row that left comes back with its id and history") {
  const auto row = insert(tables, "a", R"({"x":1})", 1);
  const auto id = one(row).id;
  const auto state = GENERATE(ResourceState::kVanished, ResourceState::kFiltered);
  store().leave(row, state, "gone", at(2)).value();
  CHECK(query().empty());
  CHECK(store().find(tables, "a").value() == 0);
  CHECK(store().one("t", "PG::Table", "a").value().value().state == state);
  CHECK(query({.state = state}).size() == 1);
  store().commit().value();
  reopen();

  const auto again = store().insert({.scan = tables,
                                     .native_id = "a",
                                     .uid = "9",
                                     .label = "new label",
                                     .properties = R"({"x":2})",
                                     .content = hash128(R"({"x":2})"),
                                     .at = at(3)});
  CHECK(again.value().row == row);
  CHECK(again.value().id == id);
  const auto found = one(row);
  CHECK(found.state == ResourceState::kPresent);
  CHECK(found.version == 3);
  CHECK(found.first_seen == at(1));
  CHECK(found.changed_at == at(3));
  CHECK(found.last_seen == at(3));
  CHECK(found.label == "new label");
  CHECK(found.uid == "9");
  CHECK(query().size() == 1);
  const auto history = store().history(row).value();
  REQUIRE(history.size() == 3);
  CHECK(history[1].cause == "gone");
  CHECK(history[1].patch == "[]");
  CHECK(history[2].cause == "discovered");
  CHECK(store().properties_at(row, at(2.5)).value() == R"({"x":1})");
  CHECK(store().properties_at(row, at(3)).value() == R"({"x":2})");
}

TEST_CASE_METHOD(StoreFixture, "a row that comes back as it was has its entry in the history, too") {
  const auto row = insert(tables, "a", R"({"x":1})", 1);
  store().leave(row, ResourceState::kVanished, "gone", at(2)).value();
  CHECK(insert(tables, "a", R"({"x":1})", 3, 0, "9") == row);
  CHECK(one(row).uid == "9");
  const auto history = store().history(row).value();
  REQUIRE(history.size() == 3);
  CHECK(history[2].cause == "discovered");
  CHECK(history[2].at == at(3));
}

TEST_CASE_METHOD(StoreFixture, "a missing row stays listed, and is told so once") {
  const auto row = insert(tables, "a");
  store().leave(row, ResourceState::kMissing, "missing", at(1)).value();
  store().leave(row, ResourceState::kMissing, "missing", at(2)).value();
  CHECK(one(row).state == ResourceState::kMissing);
  CHECK(one(row).version == 2);
  CHECK(query().size() == 1);
  CHECK(store().find(tables, "a").value() == row);
  store().leave(row, ResourceState::kVanished, "vanished", at(3)).value();
  CHECK(query().empty());
}

TEST_CASE_METHOD(StoreFixture, "what is made anew where one is missing is as old as that, and not as the missing one") {
  const auto row = insert(tables, "a");
  store().leave(row, ResourceState::kMissing, "missing", at(1)).value();
  CHECK(insert(tables, "a", "{}", 5) == row);
  CHECK(one(row).state == ResourceState::kPresent);
  CHECK(one(row).changed_at == at(5));
  CHECK(store().history(row).value().back().cause == "discovered");
}

TEST_CASE_METHOD(StoreFixture, "what left does not leave again and is not changed") {
  const auto row = insert(tables, "a");
  store().leave(row, ResourceState::kVanished, "vanished", at(1)).value();
  store().leave(row, ResourceState::kFiltered, "filtered", at(2)).value();
  CHECK(one(row).state == ResourceState::kVanished);
  CHECK(one(row).version == 2);
  CHECK(store().change(row, "{}", {}, "l", "", "[]", at(3)).error().code == Errc::kNotFound);
  CHECK(store().rename(row, "b", "b", 0, at(3)).error().code == Errc::kNotFound);
  CHECK(store().change(12345, "{}", {}, "l", "", "[]", at(3)).error().code == Errc::kNotFound);
  store().set_stale(row, true).value();
  CHECK(one(row).state == ResourceState::kVanished);
  store().commit().value();
}

TEST_CASE_METHOD(StoreFixture, "a row that is released says nothing of the stack that it was in") {
  const auto row = insert(tables, "a");
  store().manage(row, {"shop", "name", "{}"}).value();
  store().set_drifted(row, true).value();
  CHECK(one(row).stack == "shop");
  store().release(row).value();
  CHECK_FALSE(one(row).managed);
  CHECK(one(row).stack.empty());
  CHECK_FALSE(one(row).drifted);
  CHECK_FALSE(store().claim(row).value());
}

TEST_CASE_METHOD(StoreFixture, "a stack's resources are shown with what is declared and what is there") {
  const auto parent = insert(schemas, "s");
  const auto row = insert(tables, "a", R"({"n":1})", 3, parent, "uid");
  store().manage(row, {"shop", "name", R"({"declared":1})"}).value();
  store().set_drifted(row, true).value();
  store().manage(parent, {"other", "name", "{}"}).value();
  int shown = 0;
  store()
      .of_stack("shop", {},
                [&](const ManagedView& view) {
                  ++shown;
                  CHECK(view.row == row);
                  CHECK(view.target == "t");
                  CHECK(view.type == "PG::Table");
                  CHECK(view.native_id == "a");
                  CHECK(view.uid == "uid");
                  CHECK(view.name == "name");
                  CHECK(view.state == ResourceState::kPresent);
                  CHECK(view.drifted);
                  CHECK(view.properties == R"({"n":1})");
                  CHECK(view.declared == R"({"declared":1})");
                  CHECK(view.content == hash128(R"({"n":1})"));
                  CHECK(view.parent == parent);
                  CHECK(view.changed_at == at(3));
                })
      .value();
  CHECK(shown == 1);
}

TEST_CASE_METHOD(StoreFixture, "a renamed row keeps its id and is found under its new name") {
  const auto parent = insert(schemas, "s");
  const auto row = insert(tables, "old", R"({"x":1})", 1);
  const auto id = one(row).id;
  store().set_stale(row, true).value();
  store().rename(row, "new", "New", parent, at(2)).value();
  CHECK(store().find(tables, "old").value() == 0);
  CHECK(store().find(tables, "new").value() == row);
  const auto found = one(row);
  CHECK(found.id == id);
  CHECK(found.native_id == "new");
  CHECK(found.label == "New");
  CHECK(found.parent == parent);
  CHECK(found.version == 2);
  CHECK(found.changed_at == at(2));
  CHECK(found.state == ResourceState::kPresent);
  CHECK(index(tables)[0].key == hash128("new"));
  const auto history = store().history(row).value();
  REQUIRE(history.size() == 2);
  CHECK(history[1].cause == "renamed");
  CHECK(history[1].patch == "[]");
  CHECK(insert(tables, "old") != row);  // another object under the name that became free
}

TEST_CASE_METHOD(StoreFixture, "a name that had an owner before belongs to the listed row") {
  const auto first = insert(tables, "a", "{}", 0);
  store().leave(first, ResourceState::kVanished, "vanished", at(1)).value();
  const auto second = insert(tables, "b", "{}", 2);
  store().rename(second, "a", "a", 0, at(3)).value();
  CHECK(store().find(tables, "a").value() == second);
  CHECK(store().one("t", "PG::Table", "a").value().value().row == second);
  store().leave(second, ResourceState::kVanished, "vanished", at(4)).value();
  CHECK(insert(tables, "a", "{}", 5) == second);  // the one that left last comes back
}

TEST_CASE_METHOD(StoreFixture, "of those that had a name the one that left last comes back, whichever came first") {
  const auto first = insert(tables, "b", "{}", 0);
  const auto second = insert(tables, "a", "{}", 1);
  store().leave(second, ResourceState::kVanished, "vanished", at(2)).value();
  store().rename(first, "a", "a", 0, at(3)).value();
  store().leave(first, ResourceState::kVanished, "vanished", at(4)).value();
  CHECK(insert(tables, "a", "{}", 5) == first);
}

TEST_CASE_METHOD(StoreFixture, "descendants come nearest first, through listed rows only") {
  const auto root = insert(schemas, "root");
  std::vector<RowId> children, grandchildren, below;
  for (int i = 0; i < 3; ++i) children.push_back(insert(tables, "c" + std::to_string(i), "{}", 0, root));
  for (const auto child : children) {
    for (int i = 0; i < 2; ++i) {
      grandchildren.push_back(insert(tables, std::to_string(child) + "g" + std::to_string(i), "{}", 0, child));
    }
  }
  below.push_back(insert(tables, "deep", "{}", 0, grandchildren[5]));
  std::vector<RowId> all = children;
  all.insert(all.end(), grandchildren.begin(), grandchildren.end());
  all.insert(all.end(), below.begin(), below.end());
  CHECK(store().descendants(root).value() == all);
  CHECK(store().descendants(grandchildren[5]).value() == below);
  CHECK(store().descendants(below[0]).value().empty());

  store().leave(grandchildren[0], ResourceState::kVanished, "vanished", at(1)).value();
  std::erase(all, grandchildren[0]);
  store().leave(root, ResourceState::kVanished, "vanished", at(1)).value();
  CHECK(store().descendants(root).value() == all);

  store().reparent(grandchildren[1], children[1]).value();
  CHECK(store().descendants(children[0]).value().empty());
  CHECK(one(grandchildren[1]).version == 1);
  store().reparent(children[0], below[0]).value();
  store().reparent(grandchildren[5], children[0]).value();  // a circle
  CHECK(store().descendants(below[0]).value() == std::vector{children[0], grandchildren[5]});
}

TEST_CASE_METHOD(StoreFixture, "a query gives rows in order, page by page") {
  std::vector<RowId> rows;
  for (int i = 0; i < 30; ++i) rows.push_back(insert(i % 3 == 0 ? schemas : tables, "r" + std::to_string(i)));
  const auto walk = [&](ResourceQuery query, std::size_t limit) {
    std::vector<RowId> found;
    query.limit = limit;
    for (auto page = this->query(query); !page.empty(); page = this->query(query)) {
      CHECK(page.size() <= limit);
      for (const auto& shown : page) found.push_back(shown.row);
      query.after = page.back().row;
    }
    return found;
  };
  CHECK(walk({}, 7) == rows);
  CHECK(walk({.target = "t"}, 7) == rows);  // from several scans at once
  CHECK(walk({.target = "t", .type = "PG::Schema"}, 4).size() == 10);
  CHECK(walk({.type = "PG::Table"}, 1000).size() == 20);
  CHECK(walk({.target = "other"}, 5).empty());
  CHECK(walk({.type = "PG::Role"}, 5).empty());
  CHECK(query({.limit = 0}).empty());

  int calls = 0;
  store().query({}, [&](const ResourceView&) { return ++calls < 3; }).value();
  CHECK(calls == 3);
}

TEST_CASE_METHOD(StoreFixture, "a query looks at so many rows at once, and says where it goes on") {
  std::vector<RowId> rows;
  for (int i = 0; i < 30; ++i) rows.push_back(insert(i % 3 == 0 ? schemas : tables, "r" + std::to_string(i)));
  std::vector<RowId> found;
  const auto look = [&](const ResourceQuery& query) {
    found.clear();
    const auto take = [&](const ResourceView& view) {
      found.push_back(view.row);
      return true;
    };
    return store().query(query, take).value();
  };
  for (const std::string& of : {std::string(), std::string("t")}) {  // one cursor; one for each scan
    ResourceQuery query{.text = "r29", .target = of, .most_seen = 10};
    for (int answers = 1; answers < 3; ++answers) {
      const RowId next = look(query);
      CHECK(found.empty());
      CHECK(next == query.after + 10);
      query.after = next;
    }
    CHECK(look(query) == 0);
    CHECK(found == std::vector{rows.back()});
  }
  CHECK(look({.limit = 4, .most_seen = 10}) == rows[3]);
  CHECK(found.size() == 4);
  CHECK(look({.limit = 30}) == rows.back());
  CHECK(look({.limit = 31}) == 0);
  CHECK(look({.after = std::numeric_limits<RowId>::max(), .most_seen = 10}) == 0);
}

TEST_CASE_METHOD(StoreFixture, "a query over more scans than it keeps cursors for") {
  std::vector<RowId> rows;
  for (int i = 0; i < 40; ++i) {
    rows.push_back(insert(store().scan(target.id, "PG::T" + std::to_string(i)).value().id, "r"));
  }
  auto other = make_target("u");
  store().put_target(other).value();
  insert(store().scan(other.id, "PG::T0").value().id, "r");
  const auto found = query({.target = "t"});
  REQUIRE(found.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(found[i].row == rows[i]);
  CHECK(query({.type = "PG::T0"}).size() == 2);
  CHECK(query({.target = "u"}).size() == 1);
  CHECK(store().one("u", "PG::T0", "r").value().value().target == "u");
  CHECK_FALSE(store().one("", "PG::T0", "r").value());
  CHECK_FALSE(store().one("u", "", "r").value());
}

TEST_CASE_METHOD(StoreFixture, "a query's text is looked for in labels and native ids, whatever the case") {
  insert(tables, "Orders_2024");
  insert(tables, "grüße");
  insert(tables, "100%");
  insert(tables, "az");
  store().insert({.scan = tables, .native_id = "x", .label = "Nice Label", .properties = "{}", .at = at(0)}).value();
  CHECK(query({.text = "orders"}).size() == 1);
  CHECK(query({.text = "ORDERS_2"}).size() == 1);
  CHECK(query({.text = "AZ"}).size() == 1);
  CHECK(query({.text = "ordersx2"}).empty());  // no wildcards
  CHECK(query({.text = "grüß"}).size() == 1);
  CHECK(query({.text = "%"}).size() == 1);
  CHECK(query({.text = "_"}).size() == 1);
  CHECK(query({.text = "nice l"}).size() == 1);
  CHECK(query({.text = "'"}).empty());
}

TEST_CASE_METHOD(StoreFixture, "a query chooses by state, management and drift") {
  insert(tables, "present");
  store().set_stale(insert(tables, "stale"), true).value();
  store().leave(insert(tables, "missing"), ResourceState::kMissing, "missing", at(1)).value();
  store().leave(insert(tables, "vanished"), ResourceState::kVanished, "vanished", at(1)).value();
  store().leave(insert(tables, "filtered"), ResourceState::kFiltered, "filtered", at(1)).value();
  for (const std::string type : {"", "PG::Table"}) {
    CHECK(query({.type = type}).size() == 3);
    for (const auto state : {ResourceState::kPresent, ResourceState::kStale, ResourceState::kMissing,
                             ResourceState::kVanished, ResourceState::kFiltered}) {
      const auto found = query({.type = type, .state = state});
      REQUIRE(found.size() == 1);
      CHECK(found[0].state == state);
      CHECK(found[0].native_id == resource_state_name(state));
    }
    CHECK(query({.type = type, .managed = false}).size() == 3);
    CHECK(query({.type = type, .managed = true}).empty());
    CHECK(query({.type = type, .drifted_only = true}).empty());
  }
}

TEST_CASE_METHOD(StoreFixture, "a sink may ask the store again") {
  for (int i = 0; i < 5; ++i) insert(tables, std::to_string(i));
  std::size_t seen = 0;
  store()
      .query({},
             [&](const ResourceView& view) {
               CHECK(one(view.row).native_id == view.native_id);
               seen += query({.after = view.row}).size();
               return true;
             })
      .value();
  CHECK(seen == 4 + 3 + 2 + 1);
}

TEST_CASE_METHOD(StoreFixture, "a hundred thousand rows") {
  constexpr int kRows = 100'000;
  for (int i = 0; i < kRows; ++i) {
    insert(i % 2 == 0 ? tables : schemas, "resource-" + std::to_string(i), R"({"n":1})");
    if (store().uncommitted() >= 10'000) store().commit().value();
  }
  store().commit().value();
  CHECK(index(tables).size() == kRows / 2);
  CHECK(store().counts().value()[0].resources == kRows / 2);
  CHECK(query({.target = "t", .limit = kRows}).size() == kRows);
  CHECK(query({.text = "resource-99999", .limit = kRows}).size() == 1);
  CHECK(store().find(schemas, "resource-99999").value() == kRows);
}
