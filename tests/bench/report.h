#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace muster::bench {

enum class Bound : std::uint8_t { kAtLeast, kAtMost };

/// One figure, as it was measured in each round, beside its yardstick in the same round.
struct Figure {
  std::string name, unit;
  std::vector<double> values;
  std::string yardstick{};        // what `against` is; empty: there is none, goal and floor are of the value itself
  std::vector<double> against{};  // in the same unit
  Bound bound = Bound::kAtLeast;  // how ratio, goal and floor compare
  std::optional<double> goal{}, floor{};
};

double median(std::vector<double> values);

enum class Floors : std::uint8_t { kTold, kChecked };

/// Writes each figure as it comes: a line of a table, and one of JSON.
class Report {
 public:
  Report(std::ostream& table, std::ostream& lines) : table_(table), lines_(lines) {}
  void add(const Figure& figure);
  /// Names the figures that are beyond their floors. Exit status: 1 when there are some and floors are checked.
  int conclude(Floors floors);

 private:
  std::ostream& table_;
  std::ostream& lines_;
  bool titled_ = false;
  std::vector<std::string> failed_;
};

}  // namespace muster::bench
