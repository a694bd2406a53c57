#include <sodium.h>

#include <algorithm>
#include <array>
#include <utility>

#include "schema/nesting.h"
#include "schema/utf8.h"
#include "secrets.h"

namespace muster {
namespace {

constexpr std::size_t kMinBytes = 4;
constexpr std::string_view kMask = "***";
constexpr int kMaxQuoted = 2;

/// What stands between the quotes of a JSON string.
std::string quoted_json(const std::string& text, bool ascii_only) {
  const std::string json = Json(text).dump(-1, ' ', ascii_only);
  return json.substr(1, json.size() - 2);
}

/// As RFC 3986 has it in a query.
std::string in_url(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF", kPlain = "-._~";
  std::string url;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (alnum || kPlain.find(c) != std::string_view::npos) {
      url += c;
    } else {
      url += {'%', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    }
  }
  return url;
}

/// The characters that a text has in base64 whatever is encoded before and behind it, such as the user's name of HTTP's
/// basic authentication: one form for each place that it can have in a group of three bytes, of both alphabets. Short
/// ones could stand anywhere.
std::vector<std::string> in_base64(const std::string& text) {
  constexpr std::size_t kMinLetters = 6;
  constexpr std::array<std::size_t, 3> kFirst{0, 2, 3};  // letter that holds nothing of the bytes before
  std::vector<std::string> forms;
  for (const int variant : {sodium_base64_VARIANT_ORIGINAL_NO_PADDING, sodium_base64_VARIANT_URLSAFE_NO_PADDING}) {
    for (std::size_t before = 0; before < kFirst.size(); ++before) {
      const std::string bytes = std::string(before, '\0') + text;
      std::string letters(sodium_base64_encoded_len(bytes.size(), variant), '\0');
      sodium_bin2base64(letters.data(), letters.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                        bytes.size(), variant);
      const std::size_t whole = bytes.size() * 8 / 6;
      if (whole >= kFirst[before] + kMinLetters) {
        forms.push_back(letters.substr(kFirst[before], whole - kFirst[before]));
      }
    }
  }
  return forms;
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.size() < kMinBytes) continue;
    // Whatever leaves is UTF-8, some of it percent-encoded to be so; and messages like to quote JSON, some of it twice,
    // and requests that were refused.
    std::string form = percent_encode(secret);
    if (form != secret) needles_.push_back(form);
    if (valid_utf8(secret)) needles_.push_back(form = secret);
    needles_.push_back(in_url(secret));
    for (std::string& encoded : in_base64(secret)) needles_.push_back(std::move(encoded));
    for (const bool ascii_only : {false, true}) {
      std::string quoted = form;
      for (int times = 0; times < kMaxQuoted; ++times) {
        quoted = quoted_json(quoted, ascii_only);
        needles_.push_back(quoted);
      }
    }
  }
  sort();
}

void Redactor::add(const Redactor& other) {
  if (other.empty()) return;
  needles_.insert(needles_.end(), other.needles_.begin(), other.needles_.end());
  sort();
}

void Redactor::sort() {
  std::sort(needles_.begin(), needles_.end(),
            [](const auto& a, const auto& b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
  needles_.erase(std::unique(needles_.begin(), needles_.end()), needles_.end());
}

bool Redactor::finds_in(std::string_view text) const {
  return std::any_of(needles_.begin(), needles_.end(),
                     [&](const std::string& needle) { return text.find(needle) != std::string_view::npos; });
}

bool Redactor::tells(std::string_view text, std::string_view known) const {
  return std::any_of(needles_.begin(), needles_.end(), [&](const std::string& needle) {
    return text.find(needle) != std::string_view::npos && known.find(needle) == std::string_view::npos;
  });
}

void Redactor::redact(std::string& text) const {
  for (const std::string& needle : needles_) {
    for (auto at = text.find(needle); at != std::string::npos; at = text.find(needle, at + kMask.size())) {
      text.replace(at, needle.size(), kMask);
    }
  }
}

bool Redactor::redact_value(Json& value) const {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (!finds_in(text)) return false;
    redact(text);
    return true;
  }
  if (!value.is_structured()) {
    if (!finds_in(value.dump())) return false;
    value = kMask;
    return true;
  }
  bool changed = false;
  for (auto& child : value) changed = redact_value(child) || changed;
  if (!value.is_object()) return changed;
  for (auto it = value.begin(); it != value.end();) {
    if (!finds_in(it.key())) {
      ++it;
      continue;
    }
    std::string key = it.key();
    redact(key);
    Json moved = std::move(it.value());
    it = value.erase(it);
    value[key] = std::move(moved);
    changed = true;
  }
  return changed;
}

void Redactor::redact_json(JsonText& json) const {
  if (empty() || json.empty()) return;
  // Without an escape in it, a text holds each string as it is: most are done with here.
  if (json.find('\\') == std::string::npos && !finds_in(json)) return;
  if (nested_too_deep(json)) {  // as a coordinator then says of it; what is in it could not be looked at
    json.assign(kMaxNesting + 1, '[');
    return;
  }
  Json value = Json::parse(json, nullptr, false);
  if (value.is_discarded()) {  // no JSON: what it is is not ours to judge, but no secret leaves in it
    redact(json);
  } else if (redact_value(value)) {
    json = value.dump();
  }
}

void Redactor::redact(Item& item) const {
  if (finds_in(item.uid)) item.uid.clear();
  redact_json(item.properties);
}

void Redactor::redact(ListResult& page) const {
  std::erase_if(page.items, [&](const Item& item) {
    if (!finds_in(item.native_id)) return false;
    page.problems.push_back(
        {item.native_id, failure(Errc::kAccessDenied, "the native id contains a secret of the target")});
    return true;
  });
  for (Item& item : page.items) redact(item);
  for (Problem& problem : page.problems) {
    redact(problem.native_id);
    redact(problem.failure.message);
  }
}

void Redactor::redact(MatchFilter& filter) const {
  for (Condition& condition : filter.conditions) {
    if (auto* tag = std::get_if<TagMatch>(&condition)) {
      redact(tag->value);
      for (std::string& key : tag->keys) redact(key);
    } else if (auto* property = std::get_if<PropertyMatch>(&condition)) {
      redact(property->path);
      redact_json(property->value);
    }
  }
}

void Redactor::redact(JobResult& result, std::string_view known) const {
  if (empty()) return;
  if (auto* error = std::get_if<Error>(&result)) {
    redact(error->message);
  } else if (auto* page = std::get_if<ListResult>(&result)) {
    if (finds_in(page->next_page_token)) {
      result = failure(Errc::kAccessDenied, "the page token contains a secret of the target");
      return;
    }
    redact(*page);
  } else if (auto* read = std::get_if<ReadResult>(&result)) {
    for (ReadItem& answer : read->items) {
      if (auto* item = std::get_if<Item>(&answer)) redact(*item);
      if (auto* refused = std::get_if<Error>(&answer)) redact(refused->message);
    }
  } else if (auto* mutation = std::get_if<MutationResult>(&result)) {
    if (tells(mutation->native_id, known) || tells(mutation->request_id, known)) {
      // Not a code that says that nothing was done: the object is there, or on its way.
      result = failure(
          Errc::kInternalFailure,
          "the change was made or begun, and its native id or request id contains a secret, which does not leave "
          "the worker. Look at the object where it is, and give it a name without a secret");
      return;
    }
    if (finds_in(mutation->uid)) mutation->uid.clear();
    redact_json(mutation->properties);
  } else if (auto* inspection = std::get_if<InspectResult>(&result)) {
    redact(inspection->system);
    for (MatchFilter& filter : inspection->filters) redact(filter);
  } else if (auto* call = std::get_if<CallResult>(&result)) {
    redact_json(call->output);
  }
}

}  // namespace muster
