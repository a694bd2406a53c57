#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "schema/result.h"

namespace muster {

/// The fields of one API request. Asking for a field of the wrong kind gives the default and keeps the fault; what was
/// asked for is good when fault() is empty.
class ApiRequest {
 public:
  /// errors   kInvalidRequest: no JSON object, or another api version
  static Result<ApiRequest> parse(std::string_view body);

  std::string text(const char* name);
  std::string required_text(const char* name);
  std::vector<std::string> texts(const char* name);
  std::optional<bool> flag(const char* name);
  std::uint64_t number(const char* name, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most);

  /// A field as it is; nullptr: there is none.
  [[nodiscard]] const nlohmann::json* raw(const char* name) const { return find(name); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  /// Bytes of items that its answer has room for.
  [[nodiscard]] std::size_t room() const { return room_; }
  void set_room(std::size_t bytes) { room_ = bytes; }

  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

 private:
  explicit ApiRequest(nlohmann::json json) : json_(std::move(json)) {}
  const nlohmann::json* find(const char* name) const;
  void blame(const char* name, std::string_view expected);

  nlohmann::json json_;
  std::size_t bytes_ = 0;
  std::size_t room_ = 0;
  std::optional<Error> fault_;
};

}  // namespace muster
