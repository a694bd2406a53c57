#include "coordinator/secret_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace muster {
namespace {

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

bool variable_name(std::string_view text) {
  return !text.empty() && !digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return letter(c) || digit(c) || c == '_'; });
}

bool secret_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.size() <= 255 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return letter(c) || digit(c) || c == '_' || c == '-' || c == '.'; });
}

/// `body` is what stands between `${` and `}`.
Result<SecretPart> parse_reference(std::string_view body) {
  const auto wrong = [&](std::string_view why) {
    return Error{Errc::kInvalidRequest, "${" + std::string(body) + "}: " + std::string(why)};
  };
  const std::size_t colon = body.find(':');
  const std::string_view kind = body.substr(0, colon);
  const std::string_view name = colon == std::string_view::npos ? std::string_view{} : body.substr(colon + 1);
  if (kind == "env") {
    if (!variable_name(name)) return wrong("the name of an environment variable is expected after `env:`");
    return SecretPart{SecretPart::Kind::kEnv, std::string(name)};
  }
  if (kind == "file") {
    if (name.empty() || name.front() != '/') return wrong("an absolute path is expected after `file:`");
    return SecretPart{SecretPart::Kind::kFile, std::string(name)};
  }
  if (kind == "secret") {
    if (!secret_name(name)) return wrong("a file name is expected after `secret:`");
    return SecretPart{SecretPart::Kind::kSecret, std::string(name)};
  }
  return wrong("not a reference: ${env:NAME}, ${file:/path} or ${secret:NAME}; $${ stands for a literal ${");
}

}  // namespace

Result<std::vector<SecretPart>> parse_secret_text(std::string_view text) {
  std::vector<SecretPart> parts;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) parts.push_back({SecretPart::Kind::kLiteral, std::exchange(literal, {})});
  };
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, 3) == "$${") {
      literal += "${";
      i += 3;
    } else if (text.substr(i, 2) == "${") {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos) {
        return Error{Errc::kInvalidRequest, "a reference without its `}`; $${ stands for a literal ${"};
      }
      Result<SecretPart> part = parse_reference(text.substr(i + 2, end - i - 2));
      if (!part) return part.error();
      end_literal();
      parts.push_back(std::move(*part));
      i = end + 1;
    } else {
      literal += text[i++];
    }
  }
  end_literal();
  return parts;
}

bool mentions_secret(std::string_view text) {
  constexpr std::array<std::string_view, 3> kOpenings{"${env:", "${file:", "${secret:"};
  return std::any_of(kOpenings.begin(), kOpenings.end(),
                     [&](std::string_view opening) { return text.find(opening) != std::string_view::npos; });
}

}  // namespace muster
