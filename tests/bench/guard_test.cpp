// A guard against regressions that does not depend on the machine's mood: how many allocations fixed workloads take.
// Allocations are where this code spends its time, and they are the same in each run, optimised or not. What was
// recorded stands in guard.txt; MUSTER_ACCEPT=1 records anew.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>

#include <catch2/catch.hpp>

#include "coordinator/jsonpath.h"
#include "coordinator/sqlite_store.h"
#include "tests/bench/workloads.h"

namespace {

std::uint64_t allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

using namespace muster;
using namespace muster::bench;

constexpr double kMargin = 0.03;
constexpr int kPages = 100;

std::filesystem::path recorded_file() {
  return std::filesystem::path(std::getenv("MUSTER_SOURCE_DIR")) / "tests/bench/guard.txt";
}

std::map<std::string, std::uint64_t> recorded() {
  std::map<std::string, std::uint64_t> values;
  std::ifstream file(recorded_file());
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;) values[name] = value;
  return values;
}

/// Fewer fail as well: what was gained is to be kept.
void guard(const std::string& name, std::uint64_t taken) {
  auto values = recorded();
  INFO(name << ": " << taken << " allocations, " << values[name]
            << " are recorded; if that is as it should be: MUSTER_ACCEPT=1");
  if (std::getenv("MUSTER_ACCEPT") != nullptr) {
    values[name] = taken;
    std::ofstream file(recorded_file());
    for (const auto& [key, value] : values) file << key << ' ' << value << '\n';
    return;
  }
  const auto wanted = static_cast<double>(values[name]);
  CHECK(static_cast<double>(taken) <= wanted * (1 + kMargin));
  CHECK(static_cast<double>(taken) >= wanted * (1 - kMargin));
}

}  // namespace

TEST_CASE("pages are encoded and decoded") {
  const auto bytes = page();
  const auto before = allocations;
  std::size_t items = 0;
  for (int i = 0; i < kPages; ++i) {
    const auto reply = decode<JobReply>(bytes).value();
    items += decode<JobReply>(encode(reply)).has_value() ? kPage : 0;
  }
  const auto taken = allocations - before;
  CHECK(items == kPages * kPage);
  guard("codec", taken);
}

TEST_CASE("pages are decoded, checked, filtered and hashed") {
  const auto bytes = page();
  const auto filters = two_filters();
  JsonDocument document;
  const auto before = allocations;
  std::size_t kept = 0;
  for (int i = 0; i < kPages; ++i) {
    for (const auto& item : items_of(bytes)) {
      if (!is_canonical_object(item.properties) || !document.parse(item.properties)) continue;
      kept += *filters.judge("FAKE::Cloud::Thing0", document) && hash128(item.properties).low != 0 ? 1 : 0;
    }
  }
  const auto taken = allocations - before;
  CHECK(kept == kPages * kPage);
  guard("observe", taken);
}

TEST_CASE("resources are stored") {
  const SystemClock clock;
  SystemRandom random;
  const auto store = open_sqlite_store(":memory:", clock, random).value();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1000; ++i) texts.push_back(properties(i));
  const auto before = allocations;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string id = "thing0-00000000-" + std::to_string(1'000'000 + i);
    const NewResource resource{1, id, "0123456789abcdef", id, texts[i], hash128(texts[i]), 0, clock.wall()};
    REQUIRE(store->insert(resource).has_value());
    store->append_event({0, clock.wall(), "FAKE", "resource.discovered", id, "{}"}).value();
  }
  store->commit().value();
  const auto taken = allocations - before;
  guard("store", taken);
}

TEST_CASE("paths are evaluated") {
  const auto path = JsonPath::parse("$.Tags[?(@.Key=='Env')].Value").value();
  const auto text = properties(1);
  JsonDocument document;
  document.parse(text).value();
  const auto before = allocations;
  int found = 0;
  for (int i = 0; i < 10'000; ++i) found += *path.any(document) ? 1 : 0;
  const auto taken = allocations - before;
  CHECK(found == 10'000);
  guard("jsonpath", taken);
}

TEST_CASE("a thousand unchanged resources are planned") {
  const auto declaration = roles(1000);
  Agreed view(declaration);
  const auto before = allocations;
  const auto result = make_plan(declaration, ApplyMode::kReconcile, view);
  const auto taken = allocations - before;
  REQUIRE(result.mistakes.empty());
  CHECK(result.plan.summary().at(StepAction::kUnchanged) == 1000);
  guard("plan", taken);
}
