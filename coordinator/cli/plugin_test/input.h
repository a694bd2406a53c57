#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/config.h"
#include "coordinator/yaml_tree.h"

/// What the author of a plugin gives `muster plugin test`: a target, and a fixture per type.
namespace muster::cli::conformance {

using Json = nlohmann::json;

/// A piece of a text with `${...}`.
struct Piece {
  enum class Kind : std::uint8_t { kLiteral, kUnique, kCanary, kPlace, kSecret, kProperty };
  Kind kind = Kind::kLiteral;
  std::string text{};   // the literal; `tmp` or `tmp2`; the name of a fixture, or `config`
  std::string path{};   // of kProperty: `name`, `columns[0].name`
  SecretPart secret{};  // of kSecret
};

/// JSON with texts that are filled in for each object.
struct Template {
  Json json = Json::object();
  std::vector<std::pair<std::string, std::vector<Piece>>> holes{};  // by RFC 6901 pointer
  YamlNode node{};                                                  // where it stands
};

/// What pieces stand for.
struct Values {
  std::string unique;
  std::string canary;
  std::function<std::string(const std::string& place)> place;
  std::function<std::optional<Json>(const std::string& name, const std::string& path)> property;
  std::function<bool(const std::string& pointer)> secret;  // whether a reference has to stand there
};

/// The document of a template. Secrets become references; so does the canary where `secret` says so.
/// errors   kInvalidRequest: a property that is not there
Result<Document> fill(const Template& source, const Values& values);
/// A command, or an id: what looks like a piece and is none stays for the shell.
Result<std::string> fill_text(const std::string& text, const Values& values);

struct Fixture {
  std::string name;  // the file's, without folder and extension, behind the last dot: PG.Role.yaml is Role
  std::string file;
  std::string type;
  std::optional<Template> create, update, replace;
  std::string parent;                         // a fixture
  std::optional<Template> parent_of_its_own;  // {type, native_id} of an object that is there
  std::vector<std::string> needs;             // fixtures that are created first; those it refers to, too
  std::string edit, remove;                   // shell commands
  int many = 32;                              // how many there can be at once
  YamlNode type_node;
};

/// A target's two systems, and how not to reach it.
struct TargetFile {
  std::string ns;
  Template config;
  std::optional<Template> config2, bad;
  std::map<std::string, std::string> env;  // of workers and of commands
};

struct Inputs {
  TargetFile target;
  std::vector<Fixture> fixtures;
  std::vector<ConfigMistake> mistakes;  // empty: all is good
};

/// Reads both, and finds every mistake that shows without the plugin.
Inputs read_inputs(const std::string& target_file, const std::string& fixtures);

/// A mistake at the place of a template where `pointer` leads, or around it.
ConfigMistake mistake_at(const Fixture& fixture, const YamlNode& node, const std::string& pointer,
                         const std::string& message);

}  // namespace muster::cli::conformance
