#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/api.h"
#include "coordinator/api_request.h"
#include "coordinator/event_log.h"

namespace muster {

/// A list under construction: takes items until the answer is large enough, and at least one.
class ItemList {
 public:
  /// `others`   bytes that the answer has beside the items
  explicit ItemList(const ApiRequest& request, std::size_t others = 0) : room_(request.room()), others_(others) {}
  [[nodiscard]] bool has_room(std::string_view item) const {
    return text_.size() == 1 || others_ + text_.size() + item.size() < room_;
  }
  void add(std::string_view item) {
    if (text_.size() > 1) text_ += ',';
    text_ += item;
  }
  [[nodiscard]] JsonText items() const { return text_ + ']'; }
  /// `next`   cursor, empty: that was all
  [[nodiscard]] JsonText take(std::string_view next) {
    JsonObject answer;
    answer.raw("items", items());
    if (next.empty()) {
      answer.raw("next", "null");
    } else {
      answer.text("next", next);
    }
    return answer.take();
  }

 private:
  std::size_t room_;
  std::size_t others_;
  std::string text_ = "[";
};

/// Where an answer goes on, from a cursor that an answer before gave.
/// returns   false: it is none
template <typename T>
bool parse_cursor(const std::string& cursor, T& at) {
  const auto* const end = cursor.data() + cursor.size();
  const auto [stopped, failed] = std::from_chars(cursor.data(), end, at);
  return failed == std::errc() && stopped == end;
}

Error not_a_cursor();

/// As many of the items, from behind the one that the cursor names, as an answer has room for: who comes or goes
/// between two answers has none of the others left out, or told twice.
/// `key`   fields, all of them texts, that tell the items apart; the items come in their order
Result<JsonText> list_answer(ApiRequest& request, const nlohmann::json& items, const std::vector<const char*>& key);

/// What was asked for is not there.
Error unknown(std::string what);

}  // namespace muster
