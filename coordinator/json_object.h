#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "schema/messages.h"

namespace muster {

/// A JSON object under construction, for the few shapes that are written by the ten thousand. Members stand in the
/// order in which they are added; names are written as they are.
class JsonObject {
 public:
  /// `room`   bytes that it is likely to take
  explicit JsonObject(std::size_t room = 0) {
    text_.reserve(room);
    text_ += '{';
  }
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& raw(std::string_view key, std::string_view json);
  JsonObject& number(std::string_view key, std::uint64_t value);
  JsonObject& flag(std::string_view key, bool value);
  [[nodiscard]] JsonText take() {
    text_ += '}';
    return std::move(text_);
  }

 private:
  void key(std::string_view name);
  std::string text_;
};

}  // namespace muster
