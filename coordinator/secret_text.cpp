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

Error wrong(std::string_view body, std::string_view why) {
  return {Errc::kInvalidRequest, "${" + std::string(body) + "}: " + std::string(why), {}, 0};
}

/// What stands between `${` and `}`, in two.
struct Body {
  std::string_view whole, kind, name;
  explicit Body(std::string_view body) : whole(body), kind(body.substr(0, body.find(':'))) {
    if (kind.size() < body.size()) name = body.substr(kind.size() + 1);
  }
};

Result<TextPart> secret_part(const Body& body, std::string_view expected) {
  using Kind = TextPart::Kind;
  if (body.kind == "env") {
    if (!variable_name(body.name))
      return wrong(body.whole, "the name of an environment variable is expected after `env:`");
    return TextPart{Kind::kEnv, std::string(body.name)};
  }
  if (body.kind == "file") {
    if (body.name.empty() || body.name.front() != '/')
      return wrong(body.whole, "an absolute path is expected after `file:`");
    return TextPart{Kind::kFile, std::string(body.name)};
  }
  if (body.kind == "secret") {
    if (!secret_name(body.name)) return wrong(body.whole, "a file name is expected after `secret:`");
    return TextPart{Kind::kSecret, std::string(body.name)};
  }
  return wrong(body.whole, "not a reference: " + std::string(expected) + "; $${ stands for a literal ${");
}

Result<TextPart> declared_part(const Body& body, const std::map<std::string, std::string>& variables) {
  if (body.kind == "resource") {
    const auto end = std::min(body.name.find_first_of(".["), body.name.size());
    const auto path = body.name.substr(std::min(end + (body.name.substr(end, 1) == "." ? 1 : 0), body.name.size()));
    if (end == 0 || path.empty()) return wrong(body.whole, "`resource:NAME.PROPERTY` is expected");
    return TextPart{TextPart::Kind::kResource, std::string(body.name.substr(0, end)), std::string(path)};
  }
  if (body.kind == "var") {
    const auto end = std::min(body.name.find(":-"), body.name.size());
    const auto name = std::string(body.name.substr(0, end));
    if (!variable_name(name)) return wrong(body.whole, "the name of a variable is expected after `var:`");
    const auto given = variables.find(name);
    if (given != variables.end()) return TextPart{TextPart::Kind::kLiteral, given->second};
    if (end == body.name.size())
      return wrong(body.whole, "the variable has no value: give it with --var " + name + "=...");
    return TextPart{TextPart::Kind::kLiteral, std::string(body.name.substr(end + 2))};
  }
  return secret_part(body, "${resource:NAME.PROPERTY}, ${var:NAME}, ${env:NAME}, ${file:/path} or ${secret:NAME}");
}

/// `part_of` makes a part of what stands between `${` and `}`. Literals that follow each other are one.
template <typename PartOf>
Result<std::vector<TextPart>> split(std::string_view text, PartOf part_of) {
  std::vector<TextPart> parts;
  const auto literal = [&](std::string_view more) {
    if (more.empty()) return;
    if (parts.empty() || parts.back().kind != TextPart::Kind::kLiteral) parts.emplace_back();
    parts.back().text += more;
  };
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    literal(text.substr(0, dollar));
    text.remove_prefix(std::min(dollar, text.size()));
    if (text.starts_with("$${")) {
      literal("${");
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const std::size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return Error{Errc::kInvalidRequest, "a reference without its `}`; $${ stands for a literal ${", {}, 0};
      }
      Result<TextPart> part = part_of(Body(text.substr(2, end - 2)));
      if (!part) return part.error();
      if (part->kind == TextPart::Kind::kLiteral) {
        literal(part->text);
      } else {
        parts.push_back(std::move(*part));
      }
      text.remove_prefix(end + 1);
    } else {
      literal(text.substr(0, 1));
      text.remove_prefix(std::min<std::size_t>(1, text.size()));
    }
  }
  return parts;
}

}  // namespace

Result<std::vector<TextPart>> parse_reference_text(std::string_view text,
                                                   const std::map<std::string, std::string>& variables) {
  return split(text, [&](const Body& body) { return declared_part(body, variables); });
}

std::string reference_text(const std::vector<TextPart>& parts) {
  constexpr std::array<std::string_view, 5> kNames{"", "env:", "file:", "secret:", "resource:"};
  std::string text;
  for (const auto& part : parts) {
    if (part.kind != TextPart::Kind::kLiteral) {
      const auto* const dot = part.path.empty() || part.path.starts_with('[') ? "" : ".";
      text += "${" + std::string(kNames.at(static_cast<std::size_t>(part.kind))) + part.text + dot + part.path + "}";
      continue;
    }
    std::size_t at = 0;
    for (auto next = part.text.find("${"); next != std::string::npos; next = part.text.find("${", at)) {
      text += part.text.substr(at, next - at) + "$${";
      at = next + 2;
    }
    text += part.text.substr(at);
  }
  return text;
}

Result<std::vector<SecretPart>> parse_secret_text(std::string_view text) {
  const auto parts =
      split(text, [](const Body& body) { return secret_part(body, "${env:NAME}, ${file:/path} or ${secret:NAME}"); });
  if (!parts) return parts.error();
  std::vector<SecretPart> secrets;
  for (const auto& part : *parts) secrets.push_back({static_cast<SecretPart::Kind>(part.kind), part.text});
  return secrets;
}

bool mentions_secret(std::string_view text) {
  constexpr std::array<std::string_view, 3> kOpenings{"${env:", "${file:", "${secret:"};
  return std::any_of(kOpenings.begin(), kOpenings.end(),
                     [&](std::string_view opening) { return text.find(opening) != std::string_view::npos; });
}

}  // namespace muster
