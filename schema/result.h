#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace muster {

using Millis = std::chrono::milliseconds;

/// Why something failed. Values below 1000 travel in messages and are the rows of schema/errors.capnp; the others
/// stay in one process or in the answers of the API.
enum class Errc : std::uint16_t {
  kNotFound = 1,
  kAlreadyExists = 2,
  kInvalidRequest = 3,
  kUnsupported = 4,
  kAccessDenied = 5,
  kLimit = 6,
  kThrottling = 7,
  kServiceUnavailable = 8,
  kNotStabilized = 9,
  kConflict = 10,
  kInternalFailure = 11,
  kNetwork = 12,
  kTimeout = 13,
  kCancelled = 14,
  kTargetChanged = 15,

  kMalformed = 1001,         // bytes or text that cannot be understood
  kDisconnected = 1002,      // no connection to the bus at the moment; try again
  kNoResponders = 1003,      // nobody subscribes to the subject
  kTooLarge = 1004,          // over a bound of items or bytes
  kIncompatible = 1005,      // another protocol, fleet or schema version
  kStoreUnavailable = 1006,  // the store could not read or write; retry with back-off
  kNoWorker = 1007,          // no worker serves the namespace and pool
  kContract = 1008,          // a plugin broke its contract
};

/// Name of a code as events, reports and the API show it (`NOT_FOUND`).
std::string_view errc_name(Errc code);

enum class Retry : std::uint8_t { kNever, kYes, kFewTimes, kAfterReread };
enum class Applied : std::uint8_t { kNotApplied, kUnknown, kSettle };

/// What the protocol's error table says of a code; codes that never travel are {kNever, kUnknown}.
struct ErrorTraits {
  Retry retry = Retry::kNever;
  Applied applied = Applied::kUnknown;
};
ErrorTraits error_traits(Errc code);

/// `number` keeps the code as it came, for a code that this version does not know; `code` is then kInternalFailure.
struct Error {
  Errc code = Errc::kInternalFailure;
  std::string message;
  Millis retry_after{0};
  std::uint16_t number = 0;

  bool operator==(const Error&) const = default;
};

/// A value or an Error. Member names are those of std::expected, which this compiler lacks.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  /// Throws std::logic_error when there is none: asking is a bug.
  T& value() & {
    if (!has_value()) throw std::logic_error("Result without value: " + error().message);
    return std::get<0>(state_);
  }
  const T& value() const& { return const_cast<Result*>(this)->value(); }
  T value() && { return std::move(value()); }  // by value: a reference would die with the temporary
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  /// Throws std::logic_error when there is an error nobody looked at.
  void value() const {
    if (!has_value()) throw std::logic_error("Result without value: " + error().message);
  }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace muster
