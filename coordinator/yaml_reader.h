#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "coordinator/config.h"
#include "coordinator/suggestion.h"
#include "coordinator/yaml_tree.h"

namespace muster {

/// A scalar's JSON value by the YAML 1.2 core schema; none for numbers that JSON has no room for.
std::optional<nlohmann::json> typed_scalar(const YamlNode& node);

/// Reads a YAML document into structs and collects every mistake with its place, instead of stopping at the first.
/// Handlers are called with values that are there; what they refuse leaves its default.
class YamlReader {
 public:
  using Json = nlohmann::json;
  using Handler = std::function<void(const YamlNode&)>;
  using Check = bool (*)(std::string_view);

  enum class Need { kOptional, kRequired };
  struct Field {
    std::string_view key;
    Handler handler;
    Need need = Need::kOptional;
  };

  YamlReader(std::string file, std::vector<ConfigMistake>& mistakes) : file_(std::move(file)), mistakes_(mistakes) {}

  /// What the places of the next mistakes are in.
  void set_file(std::string file) { file_ = std::move(file); }

  void mistake(const YamlNode& at, const std::string& what);
  [[nodiscard]] std::size_t mistakes() const { return mistakes_.size(); }

  /// Reads a map: unknown keys, keys that stand twice and missing ones are mistakes.
  void fields(const YamlNode& node, const std::vector<Field>& known);
  /// Calls `use` for each key of a map whose keys are free.
  void each_key(const YamlNode& node, const std::function<void(const YamlNode& key, const YamlNode& value)>& use);
  /// Whether `node` is of that kind; a mistake when it is not.
  bool expect(const YamlNode& node, YamlNode::Kind kind, std::string_view wanted);

  /// What a text of a document stands for at that place of it.
  using TextUse = std::function<Json(const YamlNode& node, const Json::json_pointer& at)>;
  /// JSON of any value, members sorted by name. `text` is called for each text that looks as if it held a reference.
  JsonText json(const YamlNode& node, const TextUse& text);
  /// `secrets`   where references go, their places being null; nullptr where none may stand
  JsonText json(const YamlNode& node, std::vector<Secret>* secrets);
  /// A single value, typed by its look where it is plain. A mistake: null.
  Json scalar(const YamlNode& node);

  // Handlers. `wanted` completes "expected ...".
  Handler list(Handler each);
  /// Text that is not empty and passes `valid`. Secret references are mistakes.
  Handler text(std::string& out, Check valid = nullptr, std::string_view wanted = "text");
  Handler texts(std::vector<std::string>& out, Check valid, std::string_view wanted);
  Handler boolean(bool& out);
  Handler duration(Millis& out, Millis low, Millis high, std::string_view wanted);
  /// One of `words`; `chosen` gets its index.
  Handler word(std::vector<std::string_view> words, std::function<void(std::size_t)> chosen);
  template <typename T>
  Handler number(T& out, T low, T high) {
    return [this, &out, low, high](const YamlNode& node) {
      if (const auto value = number_between(node, low, high, std::is_floating_point_v<T>))
        out = value->template get<T>();
    };
  }

  /// Names a part of the document in messages (`.pool`, `[3]`), for as long as it lives.
  class Step {
   public:
    Step(YamlReader& reader, std::string_view part) : path_(reader.path_), length_(path_.size()) {
      path_ += path_.empty() && part.front() == '.' ? part.substr(1) : part;
    }
    ~Step() { path_.resize(length_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::string& path_;
    std::size_t length_;
  };

 private:
  /// Where a value stands in a document, as a chain up to it: few ask for the pointer.
  struct Place {
    const Place* above = nullptr;  // none: the document itself
    const std::string* key = nullptr;
    std::size_t index = 0;  // where there is no key

    [[nodiscard]] Json::json_pointer pointer() const;
  };

  void write(std::string& out, const YamlNode& node, const Place& at, const TextUse& text);
  void write_map(std::string& out, const YamlNode& node, const Place& at, const TextUse& text);
  void write_scalar(std::string& out, const YamlNode& node, const Place& at, const TextUse& text);
  Json secret_text(const YamlNode& node, const Json::json_pointer& at, std::vector<Secret>& secrets);
  std::optional<Json> number_between(const YamlNode& node, const Json& low, const Json& high, bool fractions);

  std::string file_;
  std::string path_;
  std::vector<ConfigMistake>& mistakes_;
};

}  // namespace muster
