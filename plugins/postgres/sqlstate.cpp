#include "sqlstate.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::postgres {
namespace {

constexpr std::size_t kStateSize = 5;

// Of SQLSTATEs, the beginning; a longer one comes before a shorter one that it begins with.
constexpr auto kCodes = std::to_array<std::pair<std::string_view, Errc>>({
    {"42704", Errc::kNotFound},
    {"3D000", Errc::kNotFound},
    {"3F000", Errc::kNotFound},
    {"42P01", Errc::kNotFound},
    {"42710", Errc::kAlreadyExists},
    {"42P04", Errc::kAlreadyExists},
    {"42P06", Errc::kAlreadyExists},
    {"42P07", Errc::kAlreadyExists},
    {"42501", Errc::kAccessDenied},
    {"42883", Errc::kUnsupported},
    {"42703", Errc::kUnsupported},
    {"42", Errc::kInvalidRequest},
    {"53300", Errc::kThrottling},
    {"40001", Errc::kConflict},
    {"40P01", Errc::kConflict},
    {"55006", Errc::kConflict},
    {"55P03", Errc::kConflict},
    {"2BP01", Errc::kConflict},
    {"55000", Errc::kInvalidRequest},
    {"25006", Errc::kUnsupported},
    {"58P01", Errc::kUnsupported},
    {"57014", Errc::kTimeout},
    {"57P01", Errc::kServiceUnavailable},
    {"57P02", Errc::kServiceUnavailable},
    {"57P03", Errc::kServiceUnavailable},
    {"57P05", Errc::kServiceUnavailable},
    {"0A", Errc::kUnsupported},
    {"0L", Errc::kInvalidRequest},
    {"0P", Errc::kInvalidRequest},
    {"P0", Errc::kInvalidRequest},
    {"22", Errc::kInvalidRequest},
    {"23", Errc::kInvalidRequest},
    {"28", Errc::kAccessDenied},
    {"53", Errc::kLimit},
    {"54", Errc::kLimit},
    {"08", Errc::kServiceUnavailable},
});

// Another session changed what this one was looking at.
constexpr std::array<std::string_view, 4> kRaces{"concurrently updated", "concurrently deleted", "cache lookup failed",
                                                 "could not open relation with OID"};

bool is_state_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
}

}  // namespace

Errc errc_of(std::string_view sqlstate, std::string_view message) {
  if (sqlstate.empty()) return Errc::kServiceUnavailable;
  for (const auto& [prefix, code] : kCodes) {
    if (sqlstate.starts_with(prefix)) return code;
  }
  const auto in_message = [&](std::string_view words) { return message.find(words) != message.npos; };
  if (sqlstate == "XX000" && std::any_of(kRaces.begin(), kRaces.end(), in_message)) return Errc::kConflict;
  return Errc::kInternalFailure;
}

StartError parse_start_error(std::string_view verbose) {
  StartError error;
  while (!verbose.empty()) {
    auto line = verbose.substr(0, verbose.find('\n'));
    verbose.remove_prefix(std::min(verbose.size(), line.size() + 1));
    if (line.empty() || line.starts_with("LOCATION:")) continue;
    if (!error.message.empty()) error.message += '\n';
    const auto place = line.find(":  ");
    const auto state = place == line.npos ? "" : line.substr(place + 3, kStateSize);
    if (state.size() == kStateSize && std::all_of(state.begin(), state.end(), is_state_character) &&
        line.substr(place + 3 + kStateSize).starts_with(": ")) {
      error.sqlstate = state;
      error.message += line.substr(0, place + 2);
      line.remove_prefix(place + 3 + kStateSize + 2);
    }
    error.message += line;
  }
  return error;
}

}  // namespace muster::postgres
