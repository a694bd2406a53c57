// The inventory as declarations.

#include "coordinator/cli/apply.h"

#include <set>

#include <spdlog/fmt/fmt.h>

namespace muster::cli {
namespace {

/// Text that looks like a reference stays text when it is declared.
void escape_references(Json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3)) text.insert(at, "$");
  }
  if (value.is_structured()) {
    for (auto& inner : value) escape_references(inner);
  }
}

}  // namespace

int export_resources(Client& client, Screen& screen, const ResourcesOptions& options, const std::string& stack) {
  Json request = Json::object();
  const auto given = [&](const char* name, const std::string& value) {
    if (!value.empty()) request[name] = value;
  };
  given("text", options.text);
  given("target", options.target);
  given("type", options.type);
  if (options.managed) request["managed"] = *options.managed;
  Json resources = Json::array();
  std::set<std::string> names;
  const auto done = each_item(client, "export", request, [&](const std::string& text) {
    const Json item = Json::parse(text);
    std::string name;
    for (const char c : field(item, "label")) {
      const bool kept =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      if (kept) name += c;
      if (!kept && !name.empty() && name.back() != '-') name += '-';
    }
    while (!name.empty() && name.back() == '-') name.pop_back();
    name = name.substr(0, 56);
    if (name.empty() || name.front() == '-' || name.front() == '_') name = "r" + name;
    auto unique = name;
    for (int i = 2; !names.insert(unique).second; ++i) unique = name + "-" + std::to_string(i);
    Json resource{{"name", unique}, {"type", item.at("type")}, {"target", item.at("target")}};
    if (item.contains("native_id")) resource["native_id"] = item.at("native_id");
    resource["properties"] = item.at("properties");
    for (auto& property : resource["properties"]) escape_references(property);
    resources.push_back(std::move(resource));
    return true;
  });
  if (!done) return report(screen, done.error());
  const Json document{{"stack", stack}, {"resources", std::move(resources)}};
  if (screen.format == Format::kJson || screen.format == Format::kNdjson) {
    screen.out << portable_json(document.dump(screen.format == Format::kJson ? 2 : -1)) << '\n';
  } else {
    screen.out << to_yaml(document);
  }
  return screen.out ? 0 : 1;
}

}  // namespace muster::cli
