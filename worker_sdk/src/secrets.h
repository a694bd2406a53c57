#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "muster/properties.h"
#include "schema/messages.h"

namespace muster {

/// What the operator of a worker lets the fleet's configuration refer to. Empty: nothing.
struct SecretPolicy {
  std::vector<std::string> env;  // names; `*` stands for any run of characters
  std::vector<std::filesystem::path>
      files;                         // directories, for what lies below them after links are followed; or single files
  std::filesystem::path secret_dir;  // where ${secret:NAME} is a file NAME
};

/// A document with its references replaced by their values, which are also listed, for redaction.
struct ResolvedDocument {
  Json value;
  std::vector<std::string> secrets;
};

/// Resolves the references of a document: marked fields only, text is never scanned.
/// errors   kAccessDenied: not allowed, or not there; names the reference, never a value
///          kInvalidRequest: no JSON, or a pointer to something else than null
/// thread   any
Result<ResolvedDocument> resolve(const Document& document, const SecretPolicy& policy);

/// A credential of the worker itself: file `name` in the secret directory, else variable `name`.
/// errors   kAccessDenied: neither is there and allowed; the message says where it could be put, and holds no value
/// thread   any
Result<std::string> read_credential(const std::string& name, const SecretPolicy& policy);

/// Whether `name` matches `pattern`, in which `*` stands for any run of characters.
bool matches_wildcard(std::string_view pattern, std::string_view name);

/// Replaces secrets by `***` in what leaves a worker, which is UTF-8 and stays so. Values below four bytes are left:
/// they would mask ordinary text. Thread: any.
class Redactor {
 public:
  Redactor() = default;
  explicit Redactor(const std::vector<std::string>& secrets);
  void add(const Redactor& other);

  [[nodiscard]] bool empty() const { return needles_.empty(); }
  [[nodiscard]] bool finds_in(std::string_view text) const;
  /// For people.
  void redact(std::string& text) const;
  /// JSON text stays JSON: keys, strings and numbers are looked at as values, however they are escaped. Of what may
  /// hold a secret and is nested too deep only that stays.
  void redact_json(JsonText& json) const;
  /// Everything in a result. Ids are never altered, for an altered id is another object: a listed object with a secret
  /// in its id becomes a problem, a uid is dropped. The result of a change whose id holds a secret becomes an error.
  /// `known`   what the job said in plain, where nothing is secret that is found in it
  void redact(JobResult& result, std::string_view known = {}) const;

 private:
  [[nodiscard]] bool redact_value(Json& value) const;
  void redact(ListResult& page) const;
  void redact(Item& item) const;
  void redact(MatchFilter& filter) const;
  /// Whether `text` holds a secret that `known` does not.
  [[nodiscard]] bool tells(std::string_view text, std::string_view known) const;
  void sort();

  std::vector<std::string> needles_;  // longest first, so that one that contains another goes as a whole
};

}  // namespace muster
