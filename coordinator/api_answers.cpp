#include "coordinator/api_answers.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace muster {

Error not_a_cursor() {
  return {Errc::kInvalidRequest, "cursor must be `next` of an answer to this verb", {}, 0};
}

Result<JsonText> list_answer(ApiRequest& request, const nlohmann::json& items) {
  const auto cursor = request.text("cursor");
  std::size_t at = 0;
  if (!cursor.empty() && !parse_cursor(cursor, at)) return not_a_cursor();
  ItemList list;
  for (; at < items.size() && !list.full(); ++at) list.add(items[at].dump());
  return list.take(at < items.size() ? std::to_string(at) : std::string());
}

Error unknown(std::string what) {
  return {Errc::kNotFound, std::move(what), {}, 0};
}

}  // namespace muster
