#include "coordinator/suggestion.h"

#include <algorithm>
#include <utility>

#include "schema/utf8.h"

namespace muster {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return "`" + std::string(utf8_prefix(text, kShown)) + (text.size() > kShown ? "..." : "") + "`";
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  if (known.empty()) return {};
  const auto nearest = *std::ranges::min_element(known, {}, [&](auto one) { return edit_distance(word, one); });
  if (edit_distance(word, nearest) <= std::max<std::size_t>(1, nearest.size() / 3)) {
    return "did you mean " + shown(nearest) + "?";
  }
  std::string all;
  for (const auto one : known) all += (all.empty() ? "known are " : ", ") + std::string(one);
  return all;
}

std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::string all;
  for (const auto& text : texts) all.append(all.empty() ? "" : separator).append(text);
  return all;
}

}  // namespace muster
