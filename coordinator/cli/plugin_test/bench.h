#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/plugin_test/fleet.h"
#include "coordinator/cli/plugin_test/input.h"
#include "coordinator/property_rules.h"

namespace muster::cli::conformance {

/// The contract is broken; what() is what was seen.
struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The check says nothing here; what() is why.
struct CheckSkipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One of the target's systems.
struct System {
  Target target;
  Json config;  // without secrets
};

/// An object that a check makes or is about to.
struct Object {
  const Fixture* fixture = nullptr;
  const TypeDescriptor* type = nullptr;
  std::size_t system = 0;
  std::string unique;
  std::optional<Parent> parent;
  Document declared;
  Item item;  // as last read; no id: not made
  [[nodiscard]] std::string what() const { return type->name + " " + item.native_id; }
};

/// Objects that a fixture needs, in the order in which they were made.
struct Scope {
  std::size_t system = 0;
  std::vector<Object> objects;
  [[nodiscard]] const Object* find(const std::string& fixture) const;
};

/// What checks are made with: objects by fixtures, and everything that is made is deleted again. Members throw
/// CheckFailed where the plugin does not do what is asked, and Stopped.
class Bench {
 public:
  static constexpr std::size_t kLetters = 3;  // of a unique word, behind that of the run

  Bench(TestFleet& fleet, const Inputs& inputs, std::vector<System> systems, std::string run_word, std::string canary,
        std::filesystem::path directory, Environment env);

  TestFleet& fleet() { return fleet_; }
  [[nodiscard]] const std::vector<System>& systems() const { return systems_; }
  [[nodiscard]] const TypeDescriptor* type(const std::string& name) const;
  [[nodiscard]] const PropertyRule& rules(const std::string& type);
  [[nodiscard]] const Fixture* fixture(const std::string& name) const;

  /// What the fixture needs, made.
  Scope prepare(const Fixture& fixture, std::size_t system);
  /// Deletes what is left of a type's checks, and what they needed.
  /// returns   how many objects were there that nobody deleted
  std::size_t put_away(const Fixture& fixture, Scope& scope);

  /// Deletes what a check that failed has left, so that it is not in the way of the next one.
  void tidy(const Fixture& fixture, const Scope& scope);

  /// A new object of the fixture, not made yet.
  Object draft(const Fixture& fixture, const Scope& scope, std::string unique = {});
  /// A template of its fixture, filled in for an object.
  Document document(const Object& object, const Template& source, const Scope& scope);
  std::string command(const Object& object, const std::string& text, const Scope& scope);
  /// Runs a command of the fixture's, in its directory.
  void shell(const Fixture& fixture, const std::string& command);

  CreateJob create_job(const Object& object, const std::string& key) const;
  UpdateJob update_job(const Object& object, const Document& declared);
  DeleteJob delete_job(const Object& object);
  std::string new_key();

  /// Creates it and reads it.
  Object make(const Fixture& fixture, const Scope& scope, std::string unique = {});
  void create(Object& object);
  /// The answer to a change where nothing but success will do.
  MutationResult change(const Object& object, const JobOperation& operation);
  JobResult run(const Object& object, const JobOperation& operation, std::optional<int> only = {});
  /// What has come of a create that may have been made before: as often as it takes, with the same key.
  void settle(Object& object, const std::string& key, JobResult last);
  void remove(Object& object);
  /// It is there no longer.
  void forget(const Object& object);
  void remember(const Object& object);

  ReadItem read(const Object& object, const std::string& native_id);
  /// As it is now; it has the type's settle time to show.
  Item must_read(const Object& object);
  void must_be_gone(const Object& object);
  /// All pages, each by another worker than the one before.
  std::vector<Item> list(std::size_t system, const TypeDescriptor& type, const std::optional<Parent>& parent,
                         std::uint32_t page_size = 100);
  std::vector<Item> siblings(const Object& object, std::uint32_t page_size = 100);
  /// Native ids of the objects that are what is declared: by identity, or, without one, by all that is compared.
  std::vector<std::string> alike(const Object& object);

  Parent as_parent(const Object& object, const TypeDescriptor& child) const;

  /// Deletes everything that is left. returns what could not be deleted
  std::vector<std::string> clean_up();

 private:
  Values values(const Object& object, const Scope& scope);
  std::optional<Parent> parent_of(const Object& object, const Scope& scope);
  std::size_t sweep(const Object& like);
  /// Whether the text names an object of this run that is none of those that others are made in.
  [[nodiscard]] bool is_ours(const std::string& text, const Fixture& fixture) const;
  JobResult insist(const Object& object, const JobOperation& operation);

  TestFleet& fleet_;
  const Inputs& inputs_;
  std::vector<System> systems_;
  std::string run_word_, canary_;
  std::filesystem::path directory_;
  Environment env_;
  SystemRandom random_;
  std::map<std::string, PropertyRule> rules_;
  std::vector<Object> made_, open_;  // not deleted yet; drafts whose neighbours may be ours
  std::size_t uniques_ = 0;
  std::size_t turn_ = 0;
};

/// `CODE: message`.
std::string to_string(const Error& error);
/// What a job came to, for people.
std::string to_string(const JobResult& result);

}  // namespace muster::cli::conformance
