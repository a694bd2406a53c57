#pragma once

#include <exception>
#include <string>
#include <utility>

#include "schema/result.h"

namespace muster {

/// The store failed in the middle of a decision. Thrown through the decision to the loop, which rolls the transaction
/// back and starts again from what is durable: no code in between has anything sensible to do about it.
class StoreFailure : public std::exception {
 public:
  explicit StoreFailure(Error error) : error_(std::move(error)) {}
  [[nodiscard]] const char* what() const noexcept override { return error_.message.c_str(); }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

/// The value of a store's answer; throws StoreFailure.
template <typename T>
T must(Result<T> result) {
  if (!result) throw StoreFailure(std::move(result.error()));
  return std::move(*result);
}
inline void must(Result<void> result) {
  if (!result) throw StoreFailure(std::move(result.error()));
}

}  // namespace muster
