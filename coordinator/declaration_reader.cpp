#include "coordinator/declaration_reader.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "coordinator/secret_text.h"
#include "coordinator/target_reader.h"
#include "schema/subjects.h"

namespace muster {
namespace {

constexpr std::string_view kNameWanted = "a name: letters, digits, `_` and `-`, at most 64";

class DeclarationReader {
 public:
  DeclarationReader(DeclarationResult& result, const std::map<std::string, std::string>& variables,
                    DeclarationPlaces* places)
      : result_(result), variables_(variables), places_(places), yaml_("", result.mistakes) {}

  void read(const DeclarationFile& file) {
    file_ = file.name;
    yaml_.set_file(file.name);
    early_stack_ = nullptr;
    drift_unsaid_.clear();
    const auto mistakes = result_.mistakes.size(), uses = uses_.size();
    const auto tree = parse_yaml(file.text, [this](const YamlNode& root, std::size_t index, const YamlNode& item) {
      return take(root, index, item);
    });
    if (const auto* error = std::get_if<YamlError>(&tree)) {
      // What has been read of it may lack what stands behind the error.
      broken_ = true;
      result_.mistakes.resize(mistakes);
      uses_.resize(uses);
      result_.mistakes.push_back({file.name, error->line, error->column, error->message});
    } else {
      document(std::get<YamlNode>(tree));
    }
  }

  /// What names refer to is known when all files are read.
  void finish() {
    for (const auto& use : uses_) {
      if (names_.contains({use.stack, use.name})) continue;
      result_.mistakes.push_back(
          {use.file, use.line, use.column, "no resource is named " + shown(use.name) + " in stack " + use.stack});
    }
  }

  /// Of declarations that have been read whole.
  void tell_cycles() {
    if (broken_) return;
    for (const auto& stack : result_.stacks) {
      const auto cycle = cycle_of(stack.resources);
      if (cycle.empty()) continue;
      const auto use = std::ranges::find_if(uses_, [&](const Use& one) {
        return one.stack == stack.stack && one.name == cycle[1] && stack.resources[one.by].name == cycle[0];
      });
      const auto at = use == uses_.end() ? Use{} : *use;
      result_.mistakes.push_back({at.file, at.line, at.column, "the references make a cycle: " + cycle_text(cycle)});
    }
  }

 private:
  /// A name that stands in a declaration.
  struct Use {
    std::string stack, name, file;
    int line = 0, column = 0;
    std::size_t by = 0;  // index of the stack's resource that it stands in
  };

  /// Reads a resource while its file is still being parsed, where the stack that it belongs to is known by then.
  bool take(const YamlNode& root, std::size_t index, const YamlNode& item) {
    constexpr std::string_view kResources = "resources";
    if (root.keys.back().text != kResources) return false;
    if (index == 0) early_stack_ = stack_before(root);
    if (early_stack_ == nullptr) return false;
    const YamlReader::Step list(yaml_, ".resources"), step(yaml_, "[" + std::to_string(index) + "]");
    resource(item, *early_stack_);
    return true;
  }

  /// The stack that the keys before the last one name; none where they do not, or are not good.
  Declaration* stack_before(const YamlNode& root) {
    const YamlNode* name = nullptr;
    for (std::size_t i = 0; i < root.items.size(); ++i) {
      if (root.keys[i].text == root.keys.back().text || (root.keys[i].text == "stack" && name != nullptr))
        return nullptr;
      if (root.keys[i].text == "stack") name = &root.items[i];
    }
    const bool good = name != nullptr && name->kind == YamlNode::Kind::kScalar && valid_namespace(name->text);
    return good ? &stack_named(name->text) : nullptr;
  }

  Declaration& stack_named(const std::string& name) {
    const auto known = std::ranges::find(result_.stacks, name, &Declaration::stack);
    return known == result_.stacks.end() ? result_.stacks.emplace_back(Declaration{name, {}}) : *known;
  }

  void document(const YamlNode& root) {
    std::string stack;
    OnDrift on_drift = OnDrift::kAlert;
    const YamlNode* resources = nullptr;
    yaml_.fields(root, {{"stack", yaml_.text(stack, valid_namespace, kNameWanted), YamlReader::Need::kRequired},
                        {"targets", yaml_.list([this](const YamlNode& node) { target(node); })},
                        {"on_drift", on_drift_handler(on_drift)},
                        {"resources", [&](const YamlNode& list) { resources = &list; }}});
    auto& declared = stack_named(stack);
    if (resources == nullptr) return;
    const YamlReader::Step step(yaml_, ".resources");  // those that are left; read last, for `stack` may stand behind
    yaml_.list([&](const YamlNode& node) { resource(node, declared); })(*resources);
    for (const auto i : drift_unsaid_) declared.resources[i].on_drift = on_drift;
  }

  void target(const YamlNode& node) {
    const auto& read = result_.targets.emplace_back(targets_.read(node));
    if (places_ != nullptr) places_->add({}, {}, target_pointer(read.name), {file_, node.line, node.column});
  }

  YamlReader::Handler on_drift_handler(OnDrift& out) {
    return yaml_.word({"observe", "alert", "revert", "absorb"},
                      [&out](std::size_t i) { out = static_cast<OnDrift>(i); });
  }

  void resource(const YamlNode& node, Declaration& stack) {
    DeclaredResource r;
    bool says_drift = false;
    const auto name = [&](const YamlNode& one) {
      yaml_.text(r.name, valid_namespace, kNameWanted)(one);
      if (!r.name.empty() && !names_.insert({stack.stack, r.name}).second) {
        yaml_.mistake(one, "another resource of stack " + stack.stack + " has the name " + shown(r.name));
      }
    };
    const auto used = [&](std::string& out) {
      return [this, &out, &stack](const YamlNode& one) {
        yaml_.text(out, valid_namespace, kNameWanted)(one);
        if (!out.empty()) use(stack, out, one);
      };
    };
    const auto after = yaml_.list([&](const YamlNode& one) {
      std::string other;
      used(other)(one);
      if (!other.empty()) r.after.push_back(std::move(other));
    });
    const auto lifecycle = [&](const YamlNode& map) {
      yaml_.fields(map, {{"protect", yaml_.boolean(r.protect)},
                         {"replace", yaml_.word({"delete-first", "create-first"},
                                                [&](std::size_t i) { r.replace = static_cast<ReplaceOrder>(i); })}});
    };
    yaml_.fields(node,
                 {{"name", name, YamlReader::Need::kRequired},
                  {"type", yaml_.text(r.type, valid_type, "a type like PG::Table"), YamlReader::Need::kRequired},
                  {"target", yaml_.text(r.target, valid_target_name, kTargetNameWanted), YamlReader::Need::kRequired},
                  {"properties", [&](const YamlNode& map) { properties(map, r, stack); }},
                  {"native_id", yaml_.text(r.native_id)},
                  {"parent", used(r.parent)},
                  {"depends_on", after},
                  {"on_drift",
                   [&](const YamlNode& word) {
                     says_drift = true;
                     on_drift_handler(r.on_drift)(word);
                   }},
                  {"lifecycle", lifecycle}});
    if (!says_drift) drift_unsaid_.push_back(stack.resources.size());
    if (places_ != nullptr) {
      places_->add(stack.stack, r.name, {}, {file_, node.line, node.column});
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        if (node.keys[i].text == "properties")
          note_places(node.items[i], stack.stack, r.name, nlohmann::json::json_pointer());
      }
    }
    stack.resources.push_back(std::move(r));
  }

  void note_places(const YamlNode& node, const std::string& stack, const std::string& name,
                   const nlohmann::json::json_pointer& at) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const bool map = node.kind == YamlNode::Kind::kMap;
      const auto below = map ? at / node.keys[i].text : at / i;
      const auto& where = map ? node.keys[i] : node.items[i];
      places_->add(stack, name, below.to_string(), {file_, where.line, where.column});
      note_places(node.items[i], stack, name, below);
    }
  }

  void properties(const YamlNode& node, DeclaredResource& r, const Declaration& stack) {
    if (!yaml_.expect(node, YamlNode::Kind::kMap, "a mapping")) return;
    r.properties = yaml_.json(node, [&](const YamlNode& text, const auto& at) -> nlohmann::json {
      auto parts = parse_reference_text(text.text, variables_);
      if (!parts) {
        yaml_.mistake(text, parts.error().message);
        return nullptr;
      }
      if (parts->empty()) return "";
      if (parts->size() == 1 && parts->front().kind == TextPart::Kind::kLiteral) {
        auto filled = text;  // an unquoted one is what it would be if its variable's value stood there
        filled.text = std::move(parts->front().text);
        return yaml_.scalar(filled);
      }
      for (const auto& part : *parts) {
        if (part.kind == TextPart::Kind::kResource) use(stack, part.text, text);
      }
      r.holes.push_back({at.to_string(), std::move(*parts)});
      return nullptr;
    });
  }

  void use(const Declaration& stack, const std::string& name, const YamlNode& at) {
    uses_.push_back({stack.stack, name, file_, at.line, at.column, stack.resources.size()});
  }

  DeclarationResult& result_;
  const std::map<std::string, std::string>& variables_;
  DeclarationPlaces* places_;
  YamlReader yaml_;
  TargetReader targets_{yaml_};
  std::string file_;
  bool broken_ = false;                    // a file is no YAML to its end
  Declaration* early_stack_ = nullptr;     // that resources of the file go to while it is parsed
  std::vector<std::size_t> drift_unsaid_;  // resources of the file that follow the stack's on_drift; index in the stack
  std::set<std::pair<std::string, std::string>> names_;  // stack and name
  std::vector<Use> uses_;
};

}  // namespace

std::optional<DeclarationPlaces::Place> DeclarationPlaces::find(const std::string& stack, const std::string& resource,
                                                                std::string pointer) const {
  for (;;) {
    const auto it = places_.find(stack + "\n" + resource + "\n" + pointer);
    if (it != places_.end()) return it->second;
    if (pointer.empty()) return std::nullopt;
    pointer.erase(std::min(pointer.rfind('/'), pointer.size()));
  }
}

DeclarationResult read_declarations(const std::vector<DeclarationFile>& files,
                                    const std::map<std::string, std::string>& variables, DeclarationPlaces* places,
                                    Cycles cycles) {
  DeclarationResult result;
  DeclarationReader reader(result, variables, places);
  for (const auto& file : files) reader.read(file);
  reader.finish();
  if (cycles == Cycles::kMistakes) reader.tell_cycles();
  const auto order = [&](const ConfigMistake& mistake) {
    const auto file = std::ranges::find(files, mistake.file, &DeclarationFile::name);
    return std::tuple(file - files.begin(), mistake.line, mistake.column);
  };
  std::ranges::stable_sort(result.mistakes, {}, order);
  return result;
}

bool looks_like_declaration(const std::string& yaml) {
  return has_root_key(yaml, {"stack", "resources"});
}

}  // namespace muster
