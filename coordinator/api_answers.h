#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordinator/api.h"
#include "coordinator/api_request.h"
#include "coordinator/canonical.h"
#include "coordinator/event_log.h"

namespace muster {

/// A list under construction: takes items until the answer is large enough, and at least one.
class ItemList {
 public:
  /// `room`     bytes of items, and of what else the answer has
  /// `others`   bytes that it has beside the items
  explicit ItemList(std::size_t room, std::size_t others = 0) : room_(room), others_(others) {}
  [[nodiscard]] bool has_room(std::string_view item) const {
    return empty() || others_ + text_.size() + item.size() < room_;
  }
  void add(std::string_view item) {
    if (!empty()) text_ += ',';
    text_ += item;
  }
  [[nodiscard]] JsonText items() const { return text_.substr(kOpening.size() - 1) + ']'; }
  /// `next`   cursor, empty: that was all
  [[nodiscard]] JsonText take(std::string_view next) {
    text_ += R"(],"next":)";
    if (next.empty()) {
      text_ += "null";
    } else {
      append_json_string(text_, next);
    }
    text_ += '}';
    return std::move(text_);
  }

 private:
  static constexpr std::string_view kOpening = R"({"items":[)";
  [[nodiscard]] bool empty() const { return text_.size() == kOpening.size(); }

  std::size_t room_;
  std::size_t others_;
  std::string text_{kOpening};  // the whole answer so far: a megabyte is not copied for what stands around the items
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
