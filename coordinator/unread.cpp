#include "coordinator/unread.h"

#include <algorithm>
#include <utility>

#include "coordinator/canonical.h"

namespace muster {
namespace {

using Json = nlohmann::json;

bool unread(const PropertyRule& rule) {
  return rule.write_only || rule.secret;
}

/// Names of what is not to be read back; false: it may have any.
bool collect(const PropertyRule& rules, std::vector<std::string>& names) {
  for (const auto& [name, rule] : rules.properties) {
    if (unread(rule)) names.push_back(Json(name).dump());
    if (!collect(rule, names)) return false;
  }
  if (rules.others && (unread(*rules.others) || !collect(*rules.others, names))) return false;
  return !rules.items || collect(*rules.items, names);
}

void drop(Json& value, const PropertyRule& rules, const Json::json_pointer& at, std::vector<std::string>& dropped) {
  if (value.is_array() && rules.items) {
    for (std::size_t i = 0; i < value.size(); ++i) drop(value[i], *rules.items, at / i, dropped);
  }
  if (!value.is_object() || !rules.holds_write_only) return;
  for (auto it = value.begin(); it != value.end();) {
    const auto& rule = rules.of(it.key());
    if (unread(rule)) {
      if (!it->is_null()) dropped.push_back((at / it.key()).to_string());
      it = value.erase(it);
    } else {
      drop(*it, rule, at / it.key(), dropped);
      ++it;
    }
  }
}

}  // namespace

UnreadProperties::UnreadProperties(PropertyRule rules) : rules_(std::move(rules)) {
  any_name_ = !collect(rules_, names_);
}

bool UnreadProperties::may_be_in(std::string_view object) const {
  if (any_name_ || names_.empty()) return any_name_;
  if (object.find('\\') != object.npos) return true;  // a name may be written with escapes
  return std::ranges::any_of(names_, [&](const std::string& name) { return object.find(name) != object.npos; });
}

Result<JsonText> UnreadProperties::drop_from(std::string_view object, std::vector<std::string>& dropped) const {
  auto canonical = canonical_object(object);
  if (!canonical) return canonical;
  auto value = Json::parse(*canonical);
  drop(value, rules_, Json::json_pointer(), dropped);
  return canonical_object(value.dump());
}

}  // namespace muster
