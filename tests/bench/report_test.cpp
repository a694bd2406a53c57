// What `run.sh --check` goes by.

#include <sstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/bench/report.h"

using namespace muster::bench;

namespace {

struct Reported {
  int status = -1;
  std::string table, lines;
};

Reported reported(const Figure& figure, Floors floors = Floors::kChecked) {
  std::ostringstream table, lines;
  Report report(table, lines);
  report.add(figure);
  const auto status = report.conclude(floors);
  return {status, table.str(), lines.str()};
}

Figure rate(double value, double against) {
  return {"jobs", "1/s", {value}, "requests", {against}, Bound::kAtLeast, 0.6, 0.4};
}

Figure memory(double value) {
  return {"memory", "MB", {value}, {}, {}, Bound::kAtMost, 300, 600};
}

}  // namespace

TEST_CASE("A check fails on a figure below its floor, and names it") {
  const auto failed = reported(rate(39, 100));
  CHECK(failed.status == 1);
  CHECK(failed.table.find("FAIL") != std::string::npos);
  CHECK(failed.table.ends_with("beyond its floor: jobs\n"));

  for (const double value : {40.0, 59.0, 60.0, 200.0}) {
    INFO(value);
    CHECK(reported(rate(value, 100)).status == 0);
  }
  CHECK(reported(rate(40, 100)).table.find("below goal") != std::string::npos);
  CHECK(reported(rate(60, 100)).table.find("ok") != std::string::npos);
}

TEST_CASE("What is to stay low fails above its floor") {
  CHECK(reported(memory(601)).status == 1);
  CHECK(reported(memory(601)).table.ends_with("beyond its floor: memory\n"));
  CHECK(reported(memory(600)).status == 0);
  CHECK(reported(memory(1)).status == 0);
}

TEST_CASE("Without a check, what is beyond its floor is told only") {
  const auto told = reported(rate(39, 100), Floors::kTold);
  CHECK(told.status == 0);
  CHECK(told.table.ends_with("beyond its floor: jobs\n"));
}

TEST_CASE("A figure without a floor never fails") {
  CHECK(reported({"idle", "us", {1e9}}).status == 0);
}

TEST_CASE("One figure beyond its floor is enough, and a median is judged") {
  std::ostringstream table, lines;
  Report report(table, lines);
  report.add(rate(50, 100));
  report.add(memory(700));
  report.add({"spread", "1/s", {1, 50, 60}, "requests", {100, 100, 100}, Bound::kAtLeast, 0.6, 0.4});
  CHECK(report.conclude(Floors::kChecked) == 1);
  CHECK(table.str().ends_with("beyond its floor: memory\n"));
  CHECK(table.str().find("beyond its floor: spread") == std::string::npos);
}

TEST_CASE("The ratio is that of the rounds, not of the medians") {
  const Figure drifting{"jobs", "1/s", {10, 200, 3000}, "requests", {20, 400, 2000}};
  const auto line = nlohmann::json::parse(reported(drifting).lines);
  CHECK(line.at("ratio") == 0.5);
  CHECK(line.at("value") == 200);
  CHECK(line.at("low") == 10);
  CHECK(line.at("high") == 3000);
  CHECK(line.at("yardstick") == nlohmann::json{{"name", "requests"}, {"value", 400}});
  CHECK(line.at("goal").is_null());
  CHECK(line.at("floor").is_null());
}
