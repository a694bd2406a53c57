#pragma once

#include <string>
#include <vector>

#include "coordinator/cli/output.h"
#include "schema/result.h"

namespace muster::cli::conformance {

enum class Outcome : std::uint8_t { kOk, kFailed, kSkipped };

struct Row {
  std::string check;
  std::string type;  // empty: of the plugin as a whole
  Outcome outcome = Outcome::kOk;
  std::string seen;
  Millis took{0};
};

/// The rows of a test: each on `err` as it comes, all of them on `out` at the end.
class Report {
 public:
  explicit Report(Screen& screen) : screen_(screen) {}
  void add(Row row);
  /// Writes them. returns 0 where nothing failed, else 1
  int finish();

 private:
  [[nodiscard]] std::size_t count(Outcome outcome) const;

  Screen& screen_;
  std::vector<Row> rows_;
};

}  // namespace muster::cli::conformance
