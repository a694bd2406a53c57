#include "coordinator/query_compiler.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

// At worst, in the unit of kMaxCompileWork.
constexpr std::size_t kWorkOfText = 500;
constexpr std::size_t kWorkOfByte = 100;
constexpr std::size_t kWorkOfRegex = 2'000;
constexpr std::size_t kWorkOfUnicodeClass = 20'000;  // \p{L}: hundreds of ranges, each looked up in either case
constexpr std::size_t kWorkOfBrace = 5'000;          // x{1000} is written out
constexpr std::size_t kWorkOfInstruction = 100;
constexpr std::size_t kWorkOfTooLarge = 800'000;  // as many instructions as there is memory for

constexpr std::size_t kShownBytes = 100;

std::size_t work_of(std::string_view text) {
  return kWorkOfText + kWorkOfByte * text.size();
}

std::size_t work_of_regex(std::string_view pattern) {
  std::size_t work = kWorkOfRegex + work_of(pattern);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{') work += kWorkOfBrace;
    const char next = pattern[i] == '\\' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p' || next == 'P') work += kWorkOfUnicodeClass;
  }
  return work;
}

/// The beginning of a text, cut between two characters.
std::string beginning(std::string_view text) {
  if (text.size() <= kShownBytes) return '`' + std::string(text) + '`';
  std::size_t end = kShownBytes;
  while (end > 0 && (text[end] & '\xc0') == '\x80') --end;
  return '`' + std::string(text.substr(0, end)) + "...`";
}

std::string kibibytes(std::size_t bytes) {
  return std::to_string(bytes / 1024) + " KiB";
}

}  // namespace

Result<JsonPath> QueryCompiler::path(const std::string& selector) {
  if (const auto known = paths_.find(selector); known != paths_.end()) return known->second;
  if (auto spent = spend(work_of(selector)); !spent) return spent.error();
  auto path = JsonPath::parse(selector, *this);
  if (path) paths_.emplace(selector, *path);
  return path;
}

Result<std::shared_ptr<const re2::RE2>> QueryCompiler::regex(std::string_view pattern) {
  if (const auto known = regexes_.find(pattern); known != regexes_.end()) return known->second;
  if (pattern.size() > kMaxRegexBytes) {
    return Error{Errc::kTooLarge, "a regular expression has at most " + kibibytes(kMaxRegexBytes) + ", which " +
                                      beginning(pattern) + " exceeds"};
  }
  if (regexes_.size() == kMaxRegexes) {
    return Error{Errc::kTooLarge, "more than " + std::to_string(kMaxRegexes) + " different regular expressions"};
  }
  if (auto spent = spend(work_of_regex(pattern)); !spent) return spent.error();
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(kMaxRegexMemory);
  auto compiled = std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (compiled->error_code() == re2::RE2::ErrorPatternTooLarge) {
    work_.spend(kWorkOfTooLarge);
    return Error{Errc::kTooLarge, "the regular expression " + beginning(pattern) +
                                      " is too large: compiled it takes more than " + kibibytes(kMaxRegexMemory)};
  }
  if (!compiled->ok()) return Error{Errc::kMalformed, compiled->error()};
  if (auto spent = spend(kWorkOfInstruction * static_cast<std::size_t>(compiled->ProgramSize())); !spent) {
    return spent.error();
  }
  regexes_.emplace(pattern, compiled);
  return compiled;
}

Result<std::shared_ptr<const JsonDocument>> QueryCompiler::value(const std::string& json) {
  if (const auto known = values_.find(json); known != values_.end()) return known->second;
  if (auto spent = spend(work_of(json)); !spent) return spent.error();
  auto document = std::make_shared<JsonDocument>();
  if (auto parsed = document->parse(json); !parsed) return parsed.error();
  document->free_parser();
  values_.emplace(json, document);
  return std::shared_ptr<const JsonDocument>(std::move(document));
}

Result<void> QueryCompiler::spend(std::size_t work) {
  if (work_.spend(work)) return {};
  return Error{Errc::kTooLarge, "too costly to compile, together with what stands before it"};
}

}  // namespace muster
