#include "worker_sdk/bus/subject_rules.h"

#include <algorithm>

namespace muster {
namespace {

bool breaks_token(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7F;
}

/// Cuts the first token off `rest`; an empty `rest` afterwards was the last one.
std::string_view next_token(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view token = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  return token;
}

/// Bytes of the header block on the wire: version line, `name: value` lines, empty line.
std::size_t header_bytes(const std::vector<Header>& headers) {
  if (headers.empty()) return 0;
  std::size_t bytes = sizeof "NATS/1.0\r\n\r\n" - 1;
  for (const Header& header : headers) bytes += header.name.size() + header.value.size() + sizeof ": \r\n" - 1;
  return bytes;
}

bool valid_header(const Header& header) {
  const auto breaks_name = [](char c) { return breaks_token(c) || c == ':'; };
  const auto breaks_value = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  return !header.name.empty() && std::ranges::none_of(header.name, breaks_name) &&
         std::ranges::none_of(header.value, breaks_value);
}

}  // namespace

bool valid_subject(std::string_view subject, Wildcards wildcards) {
  if (subject.empty() || subject.size() > kMaxSubjectBytes || subject.back() == '.') return false;
  if (std::ranges::any_of(subject, breaks_token)) return false;
  for (std::string_view rest = subject; !rest.empty();) {
    const std::string_view token = next_token(rest);
    if (token.empty()) return false;
    const bool wildcard = token == "*" || token == ">";
    if (wildcard && (wildcards == Wildcards::kRefused || (token == ">" && !rest.empty()))) return false;
  }
  return true;
}

bool subject_matches(std::string_view pattern, std::string_view subject) {
  while (!pattern.empty() && !subject.empty()) {
    const std::string_view want = next_token(pattern);
    if (want == ">") return true;
    const std::string_view have = next_token(subject);
    if (want != "*" && want != have) return false;
  }
  return pattern.empty() && subject.empty();
}

Result<void> check_subscription(std::string_view subject, std::string_view queue) {
  if (!valid_subject(subject, Wildcards::kAllowed) || queue.size() > kMaxSubjectBytes ||
      std::ranges::any_of(queue, breaks_token)) {
    return Error{Errc::kInvalidRequest, "not a subject and queue group to subscribe to: " + std::string(subject)};
  }
  return {};
}

Result<void> check_outgoing(const Outgoing& message, std::size_t max_payload) {
  const bool valid = valid_subject(message.subject, Wildcards::kRefused) &&
                     (message.reply.empty() || valid_subject(message.reply, Wildcards::kRefused)) &&
                     message.subject.size() + message.reply.size() <= kMaxSubjectBytes &&
                     std::ranges::all_of(message.headers, valid_header);
  if (!valid) return Error{Errc::kInvalidRequest, "subject, reply or header cannot be sent: " + message.subject};
  const std::size_t bytes = message.data.size() + header_bytes(message.headers);
  if (bytes > max_payload) {
    return Error{Errc::kTooLarge, message.subject + ": " + std::to_string(bytes) + " bytes, the bus takes " +
                                      std::to_string(max_payload)};
  }
  return {};
}

}  // namespace muster
