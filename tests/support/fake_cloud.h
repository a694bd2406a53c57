#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace muster::test {

/// First columns of the rows of a query on the books that the fake cloud keeps; none before there are books.
inline std::vector<std::string> books(const std::string& file, const std::string& sql) {
  constexpr int kBusyMillis = 10'000;
  sqlite3* database = nullptr;
  std::vector<std::string> rows;
  if (sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
    sqlite3_busy_timeout(database, kBusyMillis);
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
      while (sqlite3_step(statement) == SQLITE_ROW) {
        rows.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)));
      }
    }
    sqlite3_finalize(statement);
  }
  sqlite3_close(database);
  return rows;
}

/// Native ids of what was written and is there.
inline std::set<std::string> written(const std::string& file) {
  const auto ids = books(file, "SELECT native_id FROM objects WHERE NOT deleted AND NOT computed");
  return {ids.begin(), ids.end()};
}

/// Names that more than one object has, and idempotency keys of creates that were applied twice.
inline std::vector<std::string> doubled(const std::string& file) {
  return books(file,
               "SELECT name FROM objects WHERE NOT deleted AND NOT computed GROUP BY name HAVING count(*) > 1 "
               "UNION ALL SELECT idempotency_key FROM calls WHERE operation = 'create' AND outcome LIKE 'applied%' "
               "GROUP BY 1 HAVING count(*) > 1");
}

/// A stack of `count` things on the target `cloud`, in layers: each refers to one of the layer before.
inline std::string things(int count, int size, int layers = 10) {
  std::string text = "stack: big\nresources:\n";
  const int layer = std::max(1, count / layers);
  for (int i = 0; i < count; ++i) {
    const auto name = "r" + std::to_string(i);
    text += "  - {name: " + name + ", type: \"FAKE::Cloud::Thing0\", target: cloud, properties: {name: " + name +
            ", size: " + std::to_string(size);
    if (i >= layer) text += ", owner: \"${resource:r" + std::to_string(i - layer) + ".id}\"";
    text += "}}\n";
  }
  return text;
}

}  // namespace muster::test
