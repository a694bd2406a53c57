#include "secrets.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSecretBytes = 64 * 1024;

Error denied(const std::string& reference, const std::string& why) {
  return access_denied(reference + ": " + why);
}

/// Whether `path` is `place` or lies below it; both canonical.
bool lies_at(const fs::path& path, const fs::path& place) {
  return std::mismatch(place.begin(), place.end(), path.begin(), path.end()).first == place.end();
}

bool allowed(const fs::path& canonical, const std::vector<fs::path>& directories) {
  return std::any_of(directories.begin(), directories.end(), [&](const fs::path& directory) {
    std::error_code error;
    const fs::path base = fs::canonical(directory, error);
    return !error && lies_at(canonical, base);
  });
}

/// The content of a file below one of `directories`, less one trailing newline. Whether a file outside exists is not
/// told.
Result<std::string> read_secret(const fs::path& path, const std::vector<fs::path>& directories,
                                const std::string& reference) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  if (error || !allowed(canonical, directories)) return denied(reference, "not in a directory that this worker allows");
  if (!fs::is_regular_file(canonical, error)) return denied(reference, "not a regular file");
  std::ifstream file(canonical, std::ios::binary);
  std::string content(kMaxSecretBytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.eof()) return denied(reference, file ? "larger than 64 KiB" : "cannot be read");
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (content.ends_with('\n')) content.pop_back();
  return content;
}

Result<std::string> read_env(const std::string& name, const SecretPolicy& policy) {
  const std::string reference = "${env:" + name + "}";
  const bool allows = std::any_of(policy.env.begin(), policy.env.end(),
                                  [&](const std::string& pattern) { return matches_wildcard(pattern, name); });
  if (!allows) return denied(reference, "not a variable that this worker allows");
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return denied(reference, "not set where the worker runs");
  return std::string(value);
}

Result<std::string> read_file(const std::string& name, const SecretPolicy& policy) {
  const std::string reference = "${file:" + name + "}";
  const fs::path path(name);
  if (!path.is_absolute()) return denied(reference, "not an absolute path");
  if (std::find(path.begin(), path.end(), "..") != path.end()) return denied(reference, "a path with '..'");
  return read_secret(path, policy.files, reference);
}

Result<std::string> read_named(const std::string& name, const SecretPolicy& policy) {
  const std::string reference = "${secret:" + name + "}";
  if (policy.secret_dir.empty()) return denied(reference, "this worker has no secret directory");
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return denied(reference, "not a file name");
  }
  return read_secret(policy.secret_dir / name, {policy.secret_dir}, reference);
}

/// The text that a part stands for.
Result<std::string> value_of(const SecretPart& part, const SecretPolicy& policy) {
  switch (part.kind) {
    case SecretPart::Kind::kLiteral:
      return part.text;
    case SecretPart::Kind::kEnv:
      return read_env(part.text, policy);
    case SecretPart::Kind::kFile:
      return read_file(part.text, policy);
    case SecretPart::Kind::kSecret:
      return read_named(part.text, policy);
  }
  return invalid_request("a part of a secret of an unknown kind");
}

}  // namespace

Result<std::string> read_credential(const std::string& name, const SecretPolicy& policy) {
  auto named = read_named(name, policy);
  if (named) return named;
  auto variable = read_env(name, policy);
  if (variable) return variable;
  return access_denied("no credential " + name + ": " + named.error().message + "; " + variable.error().message +
                       ". Put it into a file of that name in the directory of --secret-dir, or into a variable of "
                       "that name that --allow-env (muster.yaml: workers: allow: env:) names");
}

bool matches_wildcard(std::string_view pattern, std::string_view name) {
  std::optional<std::string_view> after_star;  // where matching goes on when the last `*` takes one character more
  std::string_view rest;
  while (!name.empty()) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      rest = name;
    } else if (!pattern.empty() && pattern.front() == name.front()) {
      pattern.remove_prefix(1);
      name.remove_prefix(1);
    } else if (after_star) {
      rest.remove_prefix(1);
      pattern = *after_star;
      name = rest;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

Result<ResolvedDocument> resolve(const Document& document, const SecretPolicy& policy) {
  ResolvedDocument resolved;
  resolved.value = Json::parse(document.json, nullptr, false);
  if (resolved.value.is_discarded()) return invalid_request("a document that is no JSON");
  for (const Secret& secret : document.secrets) {
    std::string value;
    for (const SecretPart& part : secret.parts) {
      auto text = value_of(part, policy);
      if (!text) return std::move(text.error());
      value += *text;
      if (part.kind != SecretPart::Kind::kLiteral) resolved.secrets.push_back(std::move(*text));
    }
    try {
      Json& hole = resolved.value.at(Json::json_pointer(secret.pointer));
      if (!hole.is_null()) return invalid_request("a secret at " + secret.pointer + ", where a value stands");
      hole = std::move(value);
    } catch (const Json::exception&) {
      return invalid_request("a secret at " + secret.pointer + ", which the document lacks");
    }
  }
  return resolved;
}

}  // namespace muster
