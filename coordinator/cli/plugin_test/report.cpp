#include "coordinator/cli/plugin_test/report.h"

#include <algorithm>
#include <array>

namespace muster::cli::conformance {
namespace {

constexpr std::size_t kLongestCell = 100;  // of a table; other formats have it all

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 3> kNames{"ok", "failed", "skipped"};
  return kNames[static_cast<std::size_t>(outcome)];
}

/// What was seen, as a table has room for it: all of a failure.
std::string cell(const Json& row) {
  auto text = field(row, "seen");
  if (field(row, "result") == "failed" || text.size() <= kLongestCell) return text;
  text.resize(kLongestCell);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) text.pop_back();
  return text + "...";
}

}  // namespace

void Report::add(Row row) {
  note(screen_, std::string(name_of(row.outcome)) + "  " + row.check + (row.type.empty() ? "" : " " + row.type) +
                    (row.outcome == Outcome::kOk ? "" : ": " + row.seen));
  rows_.push_back(std::move(row));
}

std::size_t Report::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::ranges::count(rows_, outcome, &Row::outcome));
}

int Report::finish() {
  ListWriter writer(screen_,
                    {column("CHECK", "check"), column("TYPE", "type"), column("RESULT", "result"), {"SEEN", cell}}, "");
  for (const auto& row : rows_) {
    const Json item{{"check", row.check},
                    {"type", row.type.empty() ? Json() : Json(row.type)},
                    {"result", std::string(name_of(row.outcome))},
                    {"seen", row.seen},
                    {"took_ms", row.took.count()}};
    writer.add(item.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  writer.finish();
  note(screen_, std::to_string(count(Outcome::kOk)) + " ok, " + std::to_string(count(Outcome::kFailed)) + " failed, " +
                    std::to_string(count(Outcome::kSkipped)) + " skipped");
  return count(Outcome::kFailed) == 0 ? 0 : 1;
}

}  // namespace muster::cli::conformance
