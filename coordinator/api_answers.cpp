#include "coordinator/api_answers.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace muster {

Error not_a_cursor() {
  return {Errc::kInvalidRequest, "cursor must be `next` of an answer to this verb", {}, 0};
}

Result<JsonText> list_answer(ApiRequest& request, const nlohmann::json& items, const std::vector<const char*>& key) {
  const auto cursor = request.text("cursor");
  if (!cursor.empty() && !(cursor.starts_with("[\"") && cursor.ends_with("\"]"))) return not_a_cursor();
  std::vector<std::pair<std::string, const nlohmann::json*>> sorted;
  for (const auto& item : items) {
    auto names = nlohmann::json::array();
    for (const auto* field : key) names.push_back(item.value(field, ""));
    auto name = names.dump();
    if (name > cursor) sorted.emplace_back(std::move(name), &item);
  }
  std::ranges::stable_sort(
      sorted, {}, [](const auto& entry) -> const auto& { return entry.first; });
  ItemList list(request.room());
  std::string last;
  for (const auto& [name, item] : sorted) {
    const auto text = item->dump();
    if (!list.has_room(text)) return list.take(last);
    list.add(text);
    last = name;
  }
  return list.take({});
}

Error unknown(std::string what) {
  return {Errc::kNotFound, std::move(what), {}, 0};
}

}  // namespace muster
