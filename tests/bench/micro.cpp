// Parts by themselves, with Google Benchmark: what one of them costs, to see which of them a change has touched. The
// figures are of this machine; whole paths beside their yardsticks are what counts.

#include <benchmark/benchmark.h>

#include "coordinator/difference.h"
#include "coordinator/jsonpath.h"
#include "coordinator/sqlite_store.h"
#include "tests/bench/workloads.h"

namespace muster::bench {
namespace {

using benchmark::State;

void per_item(State& state, std::size_t items) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(items));
}

void encode_page(State& state) {
  const auto reply = decode<JobReply>(page()).value();
  for (auto _ : state) benchmark::DoNotOptimize(encode(reply));
  per_item(state, kPage);
}
BENCHMARK(encode_page);

void decode_page(State& state) {
  const auto bytes = page();
  for (auto _ : state) benchmark::DoNotOptimize(decode<JobReply>(bytes));
  per_item(state, kPage);
}
BENCHMARK(decode_page);

void check_canonical(State& state) {
  const auto text = properties(1);
  for (auto _ : state) benchmark::DoNotOptimize(is_canonical_object(text));
  per_item(state, 1);
}
BENCHMARK(check_canonical);

void make_canonical(State& state) {
  const auto text = "{\"z\": 1, " + properties(1).substr(1);
  for (auto _ : state) benchmark::DoNotOptimize(canonical_object(text));
  per_item(state, 1);
}
BENCHMARK(make_canonical);

void parse_and_filter(State& state) {
  const auto filters = two_filters();
  const auto text = properties(1);
  JsonDocument document;
  for (auto _ : state) {
    benchmark::DoNotOptimize(document.parse(text));
    benchmark::DoNotOptimize(filters.judge("FAKE::Cloud::Thing0", document));
  }
  per_item(state, 1);
}
BENCHMARK(parse_and_filter);

void evaluate_path(State& state) {
  const auto path = JsonPath::parse("$.Tags[?(@.Key=='Env')].Value").value();
  const auto text = properties(1);
  JsonDocument document;
  document.parse(text).value();
  for (auto _ : state) benchmark::DoNotOptimize(path.any(document));
  per_item(state, 1);
}
BENCHMARK(evaluate_path);

void compare_properties(State& state) {
  const auto there = nlohmann::json::parse(properties(1)), declared = nlohmann::json::parse(properties(2));
  const PropertyRule rules;
  for (auto _ : state) benchmark::DoNotOptimize(compare(rules, there, declared));
  per_item(state, 1);
}
BENCHMARK(compare_properties);

void plan_unchanged(State& state) {
  const auto declaration = roles(static_cast<int>(state.range(0)));
  Agreed view(declaration);
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(declaration, ApplyMode::kReconcile, view));
  per_item(state, declaration.resources.size());
}
BENCHMARK(plan_unchanged)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void store_resources(State& state) {
  const SystemClock clock;
  SystemRandom random;
  const auto text = properties(1);
  const auto content = hash128(text);
  for (auto _ : state) {
    state.PauseTiming();
    const auto store = open_sqlite_store(":memory:", clock, random).value();
    state.ResumeTiming();
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      const auto id = "thing0-" + std::to_string(10'000'000 + i);
      store->insert({1, id, "0123456789abcdef", id, text, content, 0, clock.wall()}).value();
      store->append_event({0, clock.wall(), "FAKE", "resource.discovered", id, "{}"}).value();
    }
    store->commit().value();
  }
  per_item(state, static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(store_resources)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace muster::bench

BENCHMARK_MAIN();
