#include "worker_sdk/bus/stream_ack.h"

#include <nlohmann/json.hpp>

namespace muster {
namespace {

constexpr std::size_t kLargestAck = 4096;  // of names of a stream and a domain, and why it was refused

}  // namespace

std::optional<std::string> acknowledging_stream(std::string_view answer) {
  if (answer.size() > kLargestAck || !answer.starts_with('{')) return std::nullopt;
  const auto object = nlohmann::json::parse(answer, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto stream = object.find("stream");
  const auto sequence = object.find("seq");
  if (stream == object.end() || !stream->is_string()) return std::nullopt;
  if (sequence == object.end() || !sequence->is_number_unsigned()) return std::nullopt;
  return stream->get<std::string>();
}

}  // namespace muster
