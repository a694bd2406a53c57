#include "declared.h"

#include <algorithm>

namespace muster::postgres {
namespace {

constexpr const char* kPassword = "password";

bool is_of(const Json& type, const Json& value) {
  if (type.is_array()) return std::ranges::any_of(type, [&](const Json& each) { return is_of(each, value); });
  return type == "integer" ? value.is_number_integer() : type == value.type_name();
}

Result<void> check(const Json& schema, const Json& value, const std::string& path) {
  const auto wrong = [&](const std::string& what) { return invalid_request(path + ": " + what); };
  if (schema.contains("type") && !is_of(schema["type"], value)) return wrong("must be " + schema["type"].dump());
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) {
    return wrong("must be one of " + schema["enum"].dump());
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text.find('\0') != text.npos) return wrong("has a NUL byte");
    if (text.size() < schema.value("minLength", 0U)) return wrong("is empty");
    if (schema.contains("maxLength") && text.size() > schema["maxLength"]) {
      return wrong("is longer than " + schema["maxLength"].dump() + " bytes");
    }
  }
  if (value.is_object()) {
    for (const auto& name : schema.value("required", Json::array())) {
      if (value.value(name.get<std::string>(), Json()).is_null()) return wrong(name.get<std::string>() + " is missing");
    }
    for (const auto& [name, inner] : value.items()) {
      const auto known = schema["properties"].find(name);
      if (known == schema["properties"].end()) return wrong(name + " is no property");
      if (inner.is_null()) continue;
      if (auto good = check(*known, inner, path + "." + name); !good) return good;
    }
  }
  if (value.is_array()) {
    for (const auto& inner : value) {
      if (auto good = check(schema["items"], inner, path + "[]"); !good) return good;
    }
  }
  return {};
}

/// Puts defaults where nulls are.
void fill(const Json& schema, Json& value) {
  if (value.is_array()) {
    for (auto& inner : value) fill(schema["items"], inner);
  } else if (value.is_object()) {
    for (auto& [name, inner] : value.items()) {
      const auto& known = schema["properties"][name];
      if (inner.is_null() && known.contains("default")) inner = known["default"];
      fill(known, inner);
    }
  }
}

std::string difference(const Json& declared, const Json& there, const std::string& path) {
  if (declared.is_object() && there.is_object()) {
    for (const auto& [name, value] : declared.items()) {
      auto found = difference(value, there.value(name, Json()), path.empty() ? name : path + "." + name);
      if (!found.empty()) return found;
    }
    return "";
  }
  if (declared.is_array() && there.is_array()) {
    if (declared.size() != there.size()) {
      return path + ": " + std::to_string(declared.size()) + " declared, and it has " + std::to_string(there.size());
    }
    for (const auto& element : declared) {
      const auto same = [&](const Json& other) {
        return element.is_object() ? other.value("name", Json()) == element.value("name", Json()) : other == element;
      };
      const auto found = std::ranges::find_if(there, same);
      const auto name = element.is_object() ? element.value("name", "") : element.dump();
      if (found == there.end()) return path + ": " + name + " is not among what PostgreSQL has";
      if (auto inner = difference(element, *found, path + "." + name); !inner.empty()) return inner;
    }
    return "";
  }
  if (declared == there) return "";
  return path + ": " + declared.dump() + " is " + there.dump() + " in the words of PostgreSQL: declare it so";
}

}  // namespace

Result<Json> checked_declaration(const Json& schema, const Json& declared) {
  if (auto good = check(schema, declared, "properties"); !good) return good.error();
  Json whole = declared;
  fill(schema, whole);
  for (auto it = whole.begin(); it != whole.end();) {
    if (!it->is_null()) {
      ++it;
    } else if (schema["properties"][it.key()].value("writeOnly", false)) {
      it = whole.erase(it);
    } else {
      return invalid_request(it.key() + ": cannot be absent");  // it would be missed in what is there, for ever
    }
  }
  return whole;
}

Result<Json> changes_of(const Json& schema, const Json& prior, const Json& desired) {
  const auto whole = checked_declaration(schema, desired);
  if (!whole) return whole.error();
  Json changes = Json::object();
  for (const auto& [name, property] : schema["properties"].items()) {
    const auto before = prior.value(name, Json());
    const auto after = whole->value(name, property.value("default", Json()));
    if (after == before) continue;
    if (property.value("x-muster-create-only", false)) return invalid_request(name + ": cannot be changed in place");
    if (after.is_null()) return invalid_request(name + ": cannot be absent");
    if (before.is_null() && !whole->contains(name)) continue;  // nothing is said of it
    changes[name] = after;
  }
  return changes;
}

std::string mismatch(const Json& declared, const Json& there) {
  Json compared = declared;
  compared.erase(kPassword);
  return difference(compared, there, "");
}

}  // namespace muster::postgres
