// What creates are measured against: their commits alone, one after another. For each the intent (its operation), the
// provider's own row, and the result (operation, resource, event), in the product's schema. Left out: the bus, the
// worker and its journal, the plan, and that the product puts what comes at the same time into one transaction.

#include <cstdio>

#include "sql/statements.h"
#include "tests/bench/sqlite_file.h"
#include "tests/bench/stopwatch.h"
#include "tests/bench/yardstick.h"

namespace muster::bench {

int run_commits(const CommitOptions& options) {
  SqliteFile store(options.store), provider(options.store + ".provider");
  for (auto* file : {&store, &provider}) file->run(kProductSettings);
  for (const char* migration : sql::migrations) store.run(migration);
  provider.run("PRAGMA synchronous = OFF; CREATE TABLE objects (id INTEGER PRIMARY KEY, key TEXT UNIQUE, body TEXT)");
  auto* operation = store.prepare(sql::put_operation);
  auto* insert = store.prepare(sql::insert_resource);
  auto* event = store.prepare(sql::insert_event);
  auto* object = provider.prepare("INSERT INTO objects (key, body) VALUES (?1, ?2)");
  const std::string_view command = "01M7ZDGFYVGRE53ZH6E4XYQB7R", none = "", target = "cloud",
                         type = "FAKE::Cloud::Thing0";
  const std::string properties(300, 'p'), data(200, 'd');
  const std::int64_t zero = 0, one = 1;
  const Stopwatch watch;
  for (std::int64_t i = 0; i < options.count; ++i) {
    const auto job = "01M7ZDGFYVGRE53Z" + std::to_string(1'000'000'000 + i);
    const std::string_view id(job);
    store.run("BEGIN");
    store.write(operation, command, i, std::string_view("running"), one, id, one, zero, none, none, none, none, id,
                target, type, zero);
    store.run("COMMIT");
    provider.write(object, id, std::string_view(properties));
    store.run("BEGIN");
    store.write(operation, command, i, std::string_view("done"), one, id, one, zero, none, id, none, none, id, target,
                type, one);
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(id.data(), id.size()));
    store.write(insert, static_cast<std::int64_t>(XXH3_64bits(id.data(), id.size())), one, zero, now_ns(), hash, id,
                none, id, std::string_view(properties));
    store.write(event, i + 1, now_ns(), i * 200, std::string_view("FAKE"), std::string_view("resource.created"), id,
                std::string_view(data));
    store.run("COMMIT");
  }
  std::printf(R"({"seconds":%f})"
              "\n",
              watch.seconds());
  return 0;
}

}  // namespace muster::bench
