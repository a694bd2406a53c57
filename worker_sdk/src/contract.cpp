#include "contract.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "schema/utf8.h"

namespace muster {
namespace {

constexpr std::size_t kMaxMessageBytes = 4 * 1024;
constexpr std::size_t kMaxSystemBytes = 4 * 1024;

std::string quote(std::string_view text) {
  return "'" + presentable(text) + "'";
}

void shorten(std::string& text, std::size_t limit) {
  if (text.size() <= limit) return;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80) --limit;  // within a character
  text.resize(limit);
}

bool is_text(std::string_view text, std::size_t limit) {
  return text.size() <= limit && valid_utf8(text);
}

bool is_object(std::string_view json) {
  return json.size() >= 2 && json.front() == '{' && json.back() == '}' && valid_utf8(json);
}

Item checked_item(Resource resource, JsonText properties) {
  if (resource.native_id.empty()) throw ContractViolation("a resource without native id");
  if (!is_text(resource.native_id, kMaxNativeIdBytes)) {
    throw ContractViolation("native id that is longer than 16 KiB or not UTF-8: " + quote(resource.native_id));
  }
  if (!is_text(resource.uid, kMaxNativeIdBytes)) {
    throw ContractViolation("uid of " + quote(resource.native_id) + " that is longer than 16 KiB or not UTF-8");
  }
  if (!properties.empty() && !is_object(properties)) {
    throw ContractViolation("properties of " + quote(resource.native_id) + " that are no JSON object in UTF-8");
  }
  return Item{std::move(resource.native_id), std::move(resource.uid), std::move(properties)};
}

}  // namespace

std::string presentable(std::string_view text) {
  return valid_utf8(text) ? std::string(text) : percent_encode(text);
}

void shorten_message(std::string& message) {
  shorten(message, kMaxMessageBytes);
}

void fit_bounds(JobResult& result) {
  if (auto* error = std::get_if<Error>(&result)) {
    shorten_message(error->message);
  } else if (auto* page = std::get_if<ListResult>(&result)) {
    for (Problem& problem : page->problems) {
      shorten(problem.native_id, kMaxNativeIdBytes);
      shorten_message(problem.failure.message);
    }
  } else if (auto* read = std::get_if<ReadResult>(&result)) {
    for (ReadItem& answer : read->items) {
      if (auto* refused = std::get_if<Error>(&answer)) shorten_message(refused->message);
    }
  } else if (auto* mutation = std::get_if<MutationResult>(&result)) {
    if (mutation->properties.size() > kMaxPropertiesBytes) mutation->properties.clear();
  }
}

MutationResult checked(MutationResult result) {
  if (result.status == MutationStatus::kSuccess) {
    if (!result.properties.empty() && !Json::accept(result.properties)) {  // changes are few: they are looked at
      throw ContractViolation("properties of " + quote(result.native_id) + " that are no JSON object in UTF-8");
    }
    Item item = checked_item({std::move(result.native_id), {}, std::move(result.uid)}, std::move(result.properties));
    result.native_id = std::move(item.native_id);
    result.uid = std::move(item.uid);
    result.properties = std::move(item.properties);
    return result;
  }
  if (result.request_id.empty()) throw ContractViolation("a change in progress without request id");
  if (!is_text(result.request_id, kMaxNativeIdBytes) || !is_text(result.native_id, kMaxNativeIdBytes)) {
    throw ContractViolation("request id or native id that is longer than 16 KiB or not UTF-8");
  }
  result.retry_after = std::max(result.retry_after, Millis{0});
  return result;
}

Error checked(Error error) {
  error.message = presentable(error.message);
  if (error.retry_after < Millis{0}) error.retry_after = Millis{0};
  if (error.code >= Errc::kMalformed) error.code = Errc::kInternalFailure;  // those stay in one process
  return error;
}

ListResult checked(ListPage page, ListGives gives) {
  ListResult result;
  result.items.reserve(page.items.size());
  std::unordered_set<std::string_view> seen;
  seen.reserve(page.items.size());
  for (Resource& resource : page.items) {
    JsonText properties = std::move(resource.properties).text();
    if (gives == ListGives::kIds && properties == "{}") properties.clear();  // not given: is read
    result.items.push_back(checked_item(std::move(resource), std::move(properties)));
    const std::string& native_id = result.items.back().native_id;
    if (!seen.insert(native_id).second) throw ContractViolation("native id twice in one page: " + quote(native_id));
  }
  if (!is_text(page.next_page_token, kMaxPageTokenBytes)) {
    throw ContractViolation("page token that is longer than 16 KiB or not UTF-8");
  }
  result.next_page_token = std::move(page.next_page_token);
  result.problems = std::move(page.problems);
  for (Problem& problem : result.problems) {
    problem.native_id = presentable(problem.native_id);
    problem.failure = checked(std::move(problem.failure));
  }
  result.skipped = page.skipped;
  return result;
}

ReadItem checked(Result<Resource> answer, std::string_view native_id) {
  if (!answer) return checked(std::move(answer.error()));
  Resource resource = std::move(*answer);
  if (resource.native_id.empty()) resource.native_id = native_id;
  if (resource.native_id != native_id) {
    throw ContractViolation("read of " + quote(native_id) + " answered with " + quote(resource.native_id));
  }
  JsonText properties = std::move(resource.properties).text();
  return checked_item(std::move(resource), std::move(properties));
}

InspectResult checked(Inspection inspection) {
  if (!is_text(inspection.system, kMaxSystemBytes)) {
    throw ContractViolation("system that is longer than 4 KiB or not UTF-8");
  }
  return InspectResult{std::move(inspection.system), std::move(inspection.filters), std::move(inspection.types)};
}

}  // namespace muster
