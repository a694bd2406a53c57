#include "coordinator/label.h"

#include <utility>

#include "coordinator/filter.h"
#include "coordinator/jsonpath_value.h"
#include "coordinator/query_compiler.h"

namespace muster {
namespace {

std::string cut(std::string_view text) {
  if (text.size() <= kMaxLabelBytes) return std::string(text);
  std::size_t end = kMaxLabelBytes;
  while (end > 0 && (text[end] & '\xc0') == '\x80') --end;
  return std::string(text.substr(0, end));
}

}  // namespace

Result<Labels> Labels::compile(const Manifest& manifest) {
  Labels labels;
  QueryCompiler compiler;
  const auto parse = [&](const std::string& query, const std::string& whose) -> Result<JsonPath> {
    auto path = compiler.path(query);
    if (!path) return Error{path.error().code, "label query of " + whose + ": " + path.error().message};
    return path;
  };
  std::string all;
  if (!manifest.label_query.empty()) {
    all = manifest.label_query + '\n';
    auto path = parse(manifest.label_query, manifest.plugin);
    if (!path) return path.error();
    labels.default_ = std::move(*path);
  }
  for (const TypeDescriptor& type : manifest.types) {
    if (type.label_query.empty()) continue;
    auto path = parse(type.label_query, type.name);
    if (!path) return path.error();
    labels.by_type_.insert_or_assign(type.name, std::move(*path));
    all += type.name + ' ' + type.label_query + '\n';
  }
  if (!all.empty()) labels.version_ = hex_hash(all);
  return labels;
}

const JsonPath* Labels::query(std::string_view type) const {
  if (const auto own = by_type_.find(type); own != by_type_.end()) return &own->second;
  return default_ ? &*default_ : nullptr;
}

std::string Labels::label(std::string_view type, const JsonDocument& properties, std::string_view native_id,
                          Budget& budget) const {
  const JsonPath* path = query(type);
  if (path == nullptr) return cut(native_id);
  std::optional<std::string> text;
  const auto wanted = [&](const JsonNode& node) {
    text = scalar_text(node);
    return text && !text->empty();
  };
  const auto found = path->any(properties, wanted, budget);
  return cut(found && *found ? std::string_view(*text) : native_id);
}

std::string Labels::label(std::string_view type, std::string_view properties_json, std::string_view native_id) const {
  JsonDocument properties;
  if (!applies(type) || !properties.parse(properties_json)) return cut(native_id);
  Budget budget(usual_visits(properties_json.size()));
  return label(type, properties, native_id, budget);
}

}  // namespace muster
