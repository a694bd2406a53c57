#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace muster::test {

/// First columns of the rows of a query on the books that the fake cloud keeps, NULL as nothing; none before there are
/// books. Throws std::runtime_error when they cannot be read.
inline std::vector<std::string> books(const std::string& file, const std::string& sql) {
  constexpr int kBusyMillis = 60'000;  // a machine may stand still while one of its processes writes
  if (!std::filesystem::exists(file)) return {};
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(raw, sqlite3_close);
  const auto rows_of = [&](const std::string& query) {
    const auto check = [&](bool good) {
      if (!good) throw std::runtime_error(file + ": " + sqlite3_errmsg(raw) + " (" + query + ')');
    };
    check(opened == SQLITE_OK);
    sqlite3_busy_timeout(raw, kBusyMillis);
    sqlite3_stmt* prepared = nullptr;
    check(sqlite3_prepare_v2(raw, query.c_str(), -1, &prepared, nullptr) == SQLITE_OK);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, sqlite3_finalize);
    std::vector<std::string> rows;
    int status = SQLITE_ROW;
    while ((status = sqlite3_step(prepared)) == SQLITE_ROW) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
      rows.emplace_back(text == nullptr ? "" : text);
    }
    check(status == SQLITE_DONE);
    return rows;
  };
  // The file is there before its tables, which come all at once with this.
  return rows_of("PRAGMA user_version") == std::vector<std::string>{"0"} ? std::vector<std::string>{} : rows_of(sql);
}

/// Native ids of what was written and is there.
inline constexpr const char* kObjects = "SELECT native_id FROM objects WHERE NOT deleted AND NOT computed";
inline std::set<std::string> written(const std::string& file) {
  const auto ids = books(file, kObjects);
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
