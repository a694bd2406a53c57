#include "tests/bench/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

namespace muster::bench {
namespace {

using nlohmann::json;

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value >= 1000 ? "%.0f" : value >= 10 ? "%.1f" : "%.3f", value);
  return text.data();
}

std::string or_dash(const std::optional<double>& value) {
  return value ? number(*value) : "-";
}

json or_null(const std::optional<double>& value) {
  return value ? json(*value) : json();
}

enum class Align : std::uint8_t { kLeft, kRight };

std::string cell(const std::string& text, std::size_t width, Align align = Align::kRight) {
  const std::string padding(width > text.size() ? width - text.size() : 0, ' ');
  return (align == Align::kLeft ? text + padding : padding + text) + ' ';
}

void write_row(std::ostream& out, const std::array<std::string, 10>& cells) {
  out << cell(cells[0], 28, Align::kLeft) << cell(cells[1], 12) << cell(cells[2], 25) << cell(cells[3], 8, Align::kLeft)
      << cell(cells[4], 22, Align::kLeft) << cell(cells[5], 12) << cell(cells[6], 8) << cell(cells[7], 8)
      << cell(cells[8], 8) << cells[9] << std::endl;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void Report::add(const Figure& figure) {
  // The ratio is taken within each round: what else the machine does meets both.
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(figure.values.size(), figure.against.size()); ++i) {
    if (figure.against[i] > 0) ratios.push_back(figure.values[i] / figure.against[i]);
  }
  const auto value = median(figure.values);
  const auto [low, high] = std::ranges::minmax(figure.values);
  const auto against = figure.against.empty() ? std::nullopt : std::optional(median(figure.against));
  const auto ratio = ratios.empty() ? std::nullopt : std::optional(median(ratios));
  const auto reaches = [&](const std::optional<double>& bound) {
    const auto judged = ratio.value_or(value);
    return !bound || (figure.bound == Bound::kAtLeast ? judged >= *bound : judged <= *bound);
  };
  const char* verdict = !figure.goal ? "" : reaches(figure.goal) ? "ok" : reaches(figure.floor) ? "below goal" : "FAIL";
  if (!reaches(figure.floor)) failed_.push_back(figure.name);

  if (!std::exchange(titled_, true)) {
    write_row(table_,
              {"NAME", "MEDIAN", "SPREAD", "UNIT", "YARDSTICK", "ITS MEDIAN", "RATIO", "GOAL", "FLOOR", "VERDICT"});
  }
  write_row(table_, {figure.name, number(value), number(low) + ".." + number(high), figure.unit, figure.yardstick,
                     or_dash(against), or_dash(ratio), or_dash(figure.goal), or_dash(figure.floor), verdict});
  const json line{{"name", figure.name},
                  {"value", value},
                  {"unit", figure.unit},
                  {"low", low},
                  {"high", high},
                  {"yardstick", against ? json{{"name", figure.yardstick}, {"value", *against}} : json()},
                  {"ratio", or_null(ratio)},
                  {"bound", figure.bound == Bound::kAtLeast ? "at least" : "at most"},
                  {"goal", or_null(figure.goal)},
                  {"floor", or_null(figure.floor)}};
  lines_ << line.dump() << std::endl;
}

int Report::conclude(Floors floors) {
  for (const auto& name : failed_) table_ << "beyond its floor: " << name << std::endl;
  return floors == Floors::kChecked && !failed_.empty() ? 1 : 0;
}

}  // namespace muster::bench
