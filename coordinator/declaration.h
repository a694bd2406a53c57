#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "schema/messages.h"

namespace muster {

/// A piece of a text with references.
struct TextPart {
  enum class Kind : std::uint8_t { kLiteral, kEnv, kFile, kSecret, kResource };
  Kind kind = Kind::kLiteral;
  std::string text;    // the literal; the name of a variable, file or secret; the name of a declared resource
  std::string path{};  // of kResource: which of its properties, `name` or `columns[0].name`
  bool operator==(const TextPart&) const = default;
};

/// A value that is not known where it is declared; it stands as null in the document. One part that is a resource's
/// property keeps its JSON type, several make a text.
struct Hole {
  std::string pointer;  // RFC 6901
  std::vector<TextPart> parts;
  bool operator==(const Hole&) const = default;
  /// Whether a worker resolves it, so that its value is never known here.
  [[nodiscard]] bool secret() const;
};

enum class ReplaceOrder : std::uint8_t { kDeleteFirst, kCreateFirst, kAsType };
enum class OnDrift : std::uint8_t {
  kObserve,  // recorded as a change
  kAlert,    // and an event says that it has drifted
  kRevert,   // and it is put back
  kAbsorb,   // what is there becomes what is declared
};
std::string_view on_drift_name(OnDrift value);

/// One resource as a user wants it.
struct DeclaredResource {
  std::string name;       // in its stack
  std::string type;       // PG::Table
  std::string target;     // name
  std::string native_id;  // of an object that is there and is to be adopted; empty: found by what identifies it
  std::string parent;     // name of a declared resource that it is created in; empty: found by what it refers to
  JsonText properties = "{}";
  std::vector<Hole> holes;
  std::vector<std::string> after;  // names of resources that come first
  ReplaceOrder replace = ReplaceOrder::kAsType;
  bool protect = false;  // never deleted, never replaced
  OnDrift on_drift = OnDrift::kAlert;
  bool operator==(const DeclaredResource&) const = default;

  /// Names of the resources that come first: stated, its parent, and those that it refers to.
  [[nodiscard]] std::set<std::string> needs() const;
};

/// All of a stack. `targets` are declared beside it and belong to nobody.
struct Declaration {
  std::string stack;
  std::vector<DeclaredResource> resources;
  bool operator==(const Declaration&) const = default;
};

/// Names along a cycle of needs, the first one again at the end; empty: there is none.
std::vector<std::string> cycle_of(const std::vector<DeclaredResource>& resources);
/// `a -> b -> a`.
std::string cycle_text(const std::vector<std::string>& cycle);

/// As it travels in requests and is kept in the store.
/// errors   kMalformed: not such an object, with the field
nlohmann::json to_json(const Declaration& declaration);
nlohmann::json to_json(const DeclaredResource& resource);
/// The text of to_json(), quickly: the properties are not parsed.
JsonText declared_text(const DeclaredResource& resource);
/// The same with the properties as a JSON string that holds them: quick to read again.
JsonText declared_request(const DeclaredResource& resource);
Result<Declaration> declaration_from_json(const nlohmann::json& json);
Result<DeclaredResource> declared_resource_from_json(const nlohmann::json& json);

/// What a mistake about a declared target points to, which belongs to no resource.
inline std::string target_pointer(const std::string& name) {
  return "/targets/" + name;
}

}  // namespace muster
