#include "coordinator/cli/plugin_test/input.h"

#include <algorithm>
#include <set>

#include "coordinator/references.h"
#include "coordinator/secret_text.h"
#include "coordinator/target_reader.h"
#include "coordinator/yaml_reader.h"
#include "schema/subjects.h"

namespace muster::cli::conformance {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPieces =
    "${unique}, ${canary}, ${tmp}, ${config.KEY}, ${FIXTURE.PROPERTY}, ${env:NAME} or ${file:/path} are understood";

/// What stands between `${` and `}`; none where that is nothing we know.
std::optional<Piece> piece_of(std::string_view body) {
  if (body == "unique") return Piece{Piece::Kind::kUnique};
  if (body == "canary") return Piece{Piece::Kind::kCanary};
  if (body == "tmp" || body == "tmp2") return Piece{Piece::Kind::kPlace, std::string(body)};
  if (body.find(':') != std::string_view::npos) {
    const auto parts = parse_secret_text("${" + std::string(body) + "}");
    if (!parts || parts->size() != 1) return std::nullopt;
    return Piece{Piece::Kind::kSecret, {}, {}, parts->front()};
  }
  const auto dot = body.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot + 1 == body.size()) return std::nullopt;
  return Piece{Piece::Kind::kProperty, std::string(body.substr(0, dot)), std::string(body.substr(dot + 1))};
}

enum class Unknown : std::uint8_t { kMistake, kText };

Result<std::vector<Piece>> pieces_of(std::string_view text, Unknown unknown,
                                     const std::function<bool(const std::string&)>& has_fixture) {
  std::vector<Piece> pieces;
  const auto literal = [&](std::string_view more) {
    if (more.empty()) return;
    if (pieces.empty() || pieces.back().kind != Piece::Kind::kLiteral) pieces.emplace_back();
    pieces.back().text += more;
  };
  while (!text.empty()) {
    const auto begin = std::min(text.find("${"), text.size());
    literal(text.substr(0, begin));
    text.remove_prefix(begin);
    if (text.empty()) break;
    const auto end = text.find('}');
    const auto body = text.substr(2, end == std::string_view::npos ? end : end - 2);
    auto piece = end == std::string_view::npos ? std::nullopt : piece_of(body);
    if (piece && piece->kind == Piece::Kind::kProperty && !has_fixture(piece->text)) piece.reset();
    if (piece) {
      pieces.push_back(std::move(*piece));
      text.remove_prefix(end + 1);
    } else if (unknown == Unknown::kText) {
      literal("${");
      text.remove_prefix(2);
    } else {
      return Error{Errc::kInvalidRequest, "${" + std::string(body) + "}: " + kPieces, {}, 0};
    }
  }
  return pieces;
}

class InputReader {
 public:
  void target(const std::string& file) {
    const auto node = tree(file);
    if (!node) return;
    fixture_names_ = {"config"};
    auto& target = inputs_.target;
    const auto leave = [](const YamlNode&) {};  // of an entry in muster.yaml, and no matter here
    yaml_.fields(*node, {{"namespace", yaml_.text(target.ns, valid_namespace, "a namespace like PG")},
                         {"config", [&](const YamlNode& one) { target.config = document(one); }},
                         {"config2", [&](const YamlNode& one) { target.config2 = document(one); }},
                         {"bad", [&](const YamlNode& one) { bad(one); }},
                         {"env", [&](const YamlNode& one) { variables(one); }},
                         {"name", leave},
                         {"pool", leave},
                         {"discover", leave},
                         {"filters", leave},
                         {"interval", leave}});
  }

  void fixtures(const std::string& directory) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      const auto extension = entry.path().extension();
      if (extension == ".yaml" || extension == ".yml" || extension == ".json") files.push_back(entry.path());
    }
    if (error) return inputs_.mistakes.push_back({directory, 0, 0, error.message()});
    if (files.empty()) return inputs_.mistakes.push_back({directory, 0, 0, "there is no fixture: no *.yaml"});
    std::ranges::sort(files);
    for (const auto& file : files) {
      const auto stem = file.stem().string();
      auto name = stem.substr(stem.rfind('.') + 1);
      if (!fixture_names_.insert(name).second) {
        inputs_.mistakes.push_back({file, 0, 0, "another fixture has the name " + shown(name)});
      }
    }
    for (const auto& file : files) fixture(file);
    for (const auto& each : inputs_.fixtures) {
      std::vector<std::string> path;
      look_for_cycle(each, path);
    }
  }

  Inputs take() { return std::move(inputs_); }

 private:
  std::optional<YamlNode> tree(const std::string& file) {
    yaml_.set_file(file);
    const auto text = read_file(file);
    if (!text) {
      inputs_.mistakes.push_back({file, 0, 0, text.error().message});
      return std::nullopt;
    }
    auto parsed = parse_yaml(*text);
    if (const auto* wrong = std::get_if<YamlError>(&parsed)) {
      inputs_.mistakes.push_back({file, wrong->line, wrong->column, wrong->message});
      return std::nullopt;
    }
    return std::get<YamlNode>(std::move(parsed));
  }

  /// `refers`   gets the fixtures that it names
  Template document(const YamlNode& node, std::vector<std::string>* refers = nullptr) {
    Template made;
    made.node = node;
    if (!yaml_.expect(node, YamlNode::Kind::kMap, "a mapping")) return made;
    const auto json = yaml_.json(node, [&](const YamlNode& text, const Json::json_pointer& at) -> Json {
      auto pieces =
          pieces_of(text.text, Unknown::kMistake, [&](const auto& name) { return fixture_names_.contains(name); });
      if (!pieces) {
        yaml_.mistake(text, pieces.error().message);
        return nullptr;
      }
      for (const auto& piece : *pieces) {
        if (refers != nullptr && piece.kind == Piece::Kind::kProperty && piece.text != "config")
          refers->push_back(piece.text);
      }
      made.holes.emplace_back(at.to_string(), std::move(*pieces));
      return nullptr;
    });
    made.json = Json::parse(json);
    return made;
  }

  void bad(const YamlNode& node) {
    yaml_.fields(node, {{"config", [&](const YamlNode& one) { inputs_.target.bad = document(one); },
                         YamlReader::Need::kRequired}});
  }

  void variables(const YamlNode& node) {
    if (!yaml_.expect(node, YamlNode::Kind::kMap, "a mapping")) return;
    yaml_.each_key(node, [&](const YamlNode& key, const YamlNode& value) {
      if (yaml_.expect(value, YamlNode::Kind::kScalar, "a value")) inputs_.target.env[key.text] = value.text;
    });
  }

  void parent(const YamlNode& node, Fixture& fixture) {
    if (node.kind == YamlNode::Kind::kMap) {
      fixture.parent_of_its_own = document(node, &fixture.needs);
      const auto leave = [](const YamlNode&) {};
      return yaml_.fields(node, {{"type", leave}, {"native_id", leave, YamlReader::Need::kRequired}});
    }
    yaml_.text(fixture.parent)(node);
    known(node, fixture.parent);
  }

  void known(const YamlNode& node, const std::string& name) {
    if (!name.empty() && (name == "config" || !fixture_names_.contains(name)))
      yaml_.mistake(node, "no fixture has the name " + shown(name));
  }

  void fixture(const fs::path& file) {
    const auto node = tree(file);
    if (!node) return;
    Fixture made;
    const auto stem = file.stem().string();
    made.name = stem.substr(stem.rfind('.') + 1);
    made.file = file;
    const auto create = [&](std::optional<Template>& into) {
      return [&](const YamlNode& one) { into = document(one, &made.needs); };
    };
    const auto need = [&](const YamlNode& one) {
      std::string name;
      yaml_.text(name)(one);
      known(one, name);
      if (!name.empty()) made.needs.push_back(name);
    };
    yaml_.fields(*node, {{"type",
                          [&](const YamlNode& one) {
                            yaml_.text(made.type, valid_type, "a type like PG::Table")(one);
                            made.type_node = one;
                          },
                          YamlReader::Need::kRequired},
                         {"create", create(made.create), YamlReader::Need::kRequired},
                         {"update", create(made.update)},
                         {"replace", create(made.replace)},
                         {"parent", [&](const YamlNode& one) { parent(one, made); }},
                         {"needs", yaml_.list(need)},
                         {"edit", [&](const YamlNode& one) { made.edit = one.text; }},
                         {"remove", [&](const YamlNode& one) { made.remove = one.text; }},
                         {"many", yaml_.number(made.many, 1, 1000)}});
    if (!made.parent.empty()) made.needs.push_back(made.parent);
    std::erase(made.needs, made.name);  // its own properties, which commands may have
    inputs_.fixtures.push_back(std::move(made));
  }

  void look_for_cycle(const Fixture& fixture, std::vector<std::string>& path) {
    if (std::ranges::find(path, fixture.name) != path.end()) {
      if (path.front() == fixture.name) {
        inputs_.mistakes.push_back({fixture.file, 1, 1, "the fixture needs itself, by way of " + path.back()});
      }
      return;
    }
    path.push_back(fixture.name);
    for (const auto& need : fixture.needs) {
      const auto other = std::ranges::find(inputs_.fixtures, need, &Fixture::name);
      if (other != inputs_.fixtures.end()) look_for_cycle(*other, path);
    }
    path.pop_back();
  }

  Inputs inputs_;
  YamlReader yaml_{"", inputs_.mistakes};
  std::set<std::string> fixture_names_;  // and `config`
};

std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Result<Json> value_of(const Piece& piece, const Values& values) {
  switch (piece.kind) {
    case Piece::Kind::kUnique:
      return Json(values.unique);
    case Piece::Kind::kCanary:
      return Json(values.canary);
    case Piece::Kind::kPlace:
      return Json(values.place(piece.text));
    case Piece::Kind::kProperty:
      if (auto value = values.property(piece.text, piece.path)) return std::move(*value);
      return Error{Errc::kInvalidRequest, "${" + piece.text + "." + piece.path + "}: there is no such property", {}, 0};
    default:
      return Json(piece.text);
  }
}

}  // namespace

Result<Document> fill(const Template& source, const Values& values) {
  Json json = source.json;
  Document document;
  for (const auto& [pointer, pieces] : source.holes) {
    std::vector<SecretPart> parts;
    std::string text;
    bool secret = false;
    for (const auto& piece : pieces) {
      const bool canary = piece.kind == Piece::Kind::kCanary && values.secret && values.secret(pointer);
      if (canary || piece.kind == Piece::Kind::kSecret) {
        secret = true;
        parts.push_back(canary ? SecretPart{SecretPart::Kind::kSecret, "canary"} : piece.secret);
        continue;
      }
      auto value = value_of(piece, values);
      if (!value) return value.error();
      if (pieces.size() == 1) json[Json::json_pointer(pointer)] = *value;
      text += as_text(*value);
      parts.push_back({SecretPart::Kind::kLiteral, as_text(*value)});
    }
    if (secret) {
      document.secrets.push_back({pointer, std::move(parts)});
    } else if (pieces.size() > 1) {
      json[Json::json_pointer(pointer)] = text;
    }
  }
  document.json = json.dump();
  return document;
}

Result<std::string> fill_text(const std::string& text, const Values& values) {
  const auto pieces = pieces_of(text, Unknown::kText, [&](const std::string&) { return true; });
  std::string filled;
  for (const auto& piece : *pieces) {
    const auto value = value_of(piece, values);
    if (!value) return value.error();
    filled += as_text(*value);
  }
  return filled;
}

Inputs read_inputs(const std::string& target_file, const std::string& fixtures) {
  InputReader reader;
  reader.target(target_file);
  reader.fixtures(fixtures);
  return reader.take();
}

ConfigMistake mistake_at(const Fixture& fixture, const YamlNode& node, const std::string& pointer,
                         const std::string& message) {
  const YamlNode* at = &node;
  Json::json_pointer rest(pointer);
  std::vector<std::string> tokens;
  for (; !rest.empty(); rest.pop_back()) tokens.push_back(rest.back());
  for (auto it = tokens.rbegin(); it != tokens.rend(); ++it) {
    const YamlNode* next = nullptr;
    for (std::size_t i = 0; i < at->items.size(); ++i) {
      const bool mine = at->kind == YamlNode::Kind::kMap ? at->keys[i].text == *it : std::to_string(i) == *it;
      if (mine) next = &at->items[i];
    }
    if (next == nullptr) break;
    at = next;
  }
  return {fixture.file, at->line, at->column, (pointer.empty() ? "" : pointer + ": ") + message};
}

}  // namespace muster::cli::conformance
