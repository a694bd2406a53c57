#include "coordinator/cli/plugin_test/bench.h"

#include <algorithm>

#include "coordinator/canonical.h"
#include "coordinator/cli/plugin_test/plan.h"
#include "coordinator/difference.h"
#include "coordinator/references.h"
#include "coordinator/store.h"

namespace muster::cli::conformance {
namespace {

constexpr int kTries = 8;
constexpr Millis kFirstPause{100};

/// `aaa`, `aab`, ...: short, and a word in most systems.
std::string letters(std::size_t number) {
  std::string text(Bench::kLetters, 'a');
  for (auto it = text.rbegin(); it != text.rend(); ++it, number /= 26) *it = static_cast<char>('a' + number % 26);
  return text;
}

}  // namespace

std::string to_string(const Error& error) {
  return std::string(errc_name(error.code)) + ": " + error.message;
}

std::string to_string(const JobResult& result) {
  if (const auto* error = std::get_if<Error>(&result)) return to_string(*error);
  const auto* change = std::get_if<MutationResult>(&result);
  return change != nullptr ? "success, " + change->native_id : "an answer to something else";
}

const Object* Scope::find(const std::string& fixture) const {
  for (const auto& each : objects) {
    if (each.fixture->name == fixture) return &each;
  }
  return nullptr;
}

Bench::Bench(TestFleet& fleet, const Inputs& inputs, std::vector<System> systems, std::string run_word,
             std::string canary, std::filesystem::path directory, Environment env)
    : fleet_(fleet),
      inputs_(inputs),
      systems_(std::move(systems)),
      run_word_(std::move(run_word)),
      canary_(std::move(canary)),
      directory_(std::move(directory)),
      env_(std::move(env)) {}

const TypeDescriptor* Bench::type(const std::string& name) const {
  const auto& types = fleet_.manifest().types;
  const auto found = std::ranges::find(types, name, &TypeDescriptor::name);
  return found == types.end() ? nullptr : &*found;
}

const PropertyRule& Bench::rules(const std::string& name) {
  const auto [it, made] = rules_.try_emplace(name);
  if (made) {
    if (auto read = property_rules(type(name)->schema)) it->second = std::move(*read);
  }
  return it->second;
}

const Fixture* Bench::fixture(const std::string& name) const {
  const auto found = std::ranges::find(inputs_.fixtures, name, &Fixture::name);
  return found == inputs_.fixtures.end() ? nullptr : &*found;
}

Scope Bench::prepare(const Fixture& of, std::size_t system) {
  Scope scope{system, {}};
  const std::function<void(const Fixture&)> add = [&](const Fixture& each) {
    for (const auto& need : each.needs) {
      if (scope.find(need) != nullptr) continue;
      add(*fixture(need));
      scope.objects.push_back(make(*fixture(need), scope));
    }
  };
  add(of);
  open_.push_back(draft(of, scope));
  return scope;
}

std::size_t Bench::put_away(const Fixture& of, Scope& scope) {
  std::size_t left = 0;
  std::erase_if(open_, [&](const Object& each) {
    if (each.fixture != &of || each.system != scope.system) return false;
    left += sweep(each);
    return true;
  });
  for (; !scope.objects.empty(); scope.objects.pop_back()) remove(scope.objects.back());
  return left;
}

Values Bench::values(const Object& object, const Scope& scope) {
  Values values;
  values.unique = object.unique;
  values.canary = canary_;
  values.place = [this](const std::string& place) { return (directory_ / place).string(); };
  values.property = [this, &object, &scope](const std::string& name, const std::string& path) -> std::optional<Json> {
    if (name == "config") return value_at(systems_[scope.system].config, path);
    const auto* of = name == object.fixture->name ? &object : scope.find(name);
    if (of == nullptr) return std::nullopt;
    const auto properties = Json::parse(of->item.properties, nullptr, false);
    if (auto value = properties.is_object() ? value_at(properties, path) : std::nullopt) return value;
    if (path == "native_id") return Json(of->item.native_id);
    return std::nullopt;
  };
  values.secret = [this, &object](const std::string& pointer) {
    return rules(object.type->name).of(pointer.substr(1, pointer.find('/', 1) - 1)).secret;
  };
  return values;
}

Document Bench::document(const Object& object, const Template& source, const Scope& scope) {
  auto document = fill(source, values(object, scope));
  if (!document) throw CheckFailed("fixture " + object.fixture->name + ": " + document.error().message);
  return std::move(*document);
}

std::string Bench::command(const Object& object, const std::string& text, const Scope& scope) {
  auto command = fill_text(text, values(object, scope));
  if (!command) throw CheckFailed("fixture " + object.fixture->name + ": " + command.error().message);
  return std::move(*command);
}

void Bench::shell(const Fixture& fixture, const std::string& command) {
  const auto directory = std::filesystem::absolute(fixture.file).parent_path().string();
  const auto [status, said] = fleet_.shell({"sh", {"/bin/sh", "-c", "cd \"$0\" || exit\n" + command, directory}, env_});
  if (status != 0) throw CheckFailed("the fixture's command " + describe_exit(status) + ": " + command + "\n" + said);
}

Parent Bench::as_parent(const Object& object, const TypeDescriptor& child) const {
  Json parameters = Json::object();
  const auto properties = Json::parse(object.item.properties, nullptr, false);
  for (const auto& each : child.parent_parameters) {
    if (properties.is_object() && properties.contains(each.property)) parameters[each.name] = properties[each.property];
  }
  return {object.type->name, object.item.native_id, parameters.dump()};
}

std::optional<Parent> Bench::parent_of(const Object& object, const Scope& scope) {
  const auto& fixture = *object.fixture;
  if (const auto* parent = scope.find(fixture.parent)) return as_parent(*parent, *object.type);
  if (!fixture.parent_of_its_own) return std::nullopt;
  const auto named = Json::parse(document(object, *fixture.parent_of_its_own, scope).json);
  Object parent;
  parent.fixture = &fixture;
  parent.type = type(named.value("type", object.type->parent));
  parent.system = scope.system;
  parent.item.native_id = named.at("native_id").get<std::string>();
  if (parent.type == nullptr) throw CheckFailed("fixture " + fixture.name + ": its parent is of no type of the plugin");
  parent.item = must_read(parent);
  return as_parent(parent, *object.type);
}

Object Bench::draft(const Fixture& fixture, const Scope& scope, std::string unique) {
  Object object;
  object.fixture = &fixture;
  object.type = type(fixture.type);
  object.system = scope.system;
  object.unique = unique.empty() ? run_word_ + letters(uniques_++) : std::move(unique);
  object.declared = document(object, *fixture.create, scope);
  object.parent = parent_of(object, scope);
  return object;
}

std::string Bench::new_key() {
  return make_ulid(std::chrono::system_clock::now(), random_) + "-1";
}

CreateJob Bench::create_job(const Object& object, const std::string& key) const {
  return {key, object.declared, object.parent};
}

UpdateJob Bench::update_job(const Object& object, const Document& declared) {
  const auto& of = rules(object.type->name);
  const auto there = Json::parse(object.item.properties);
  const auto wanted = Json::parse(declared.json);
  auto patch = compare(of, there, wanted, pointers_of(declared)).patch;
  auto desired = merge_declared(of, there, wanted);
  for (const auto& [name, rule] : of.properties) {
    if (rule.write_only && wanted.contains(name)) {
      patch.push_back({{"op", "replace"}, {"path", "/" + name}, {"value", wanted[name]}});
    }
  }
  for (const auto& secret : declared.secrets) desired[Json::json_pointer(secret.pointer)] = nullptr;
  UpdateJob job;
  job.idempotency_key = new_key();
  job.native_id = object.item.native_id;
  job.prior = object.item.properties;
  job.desired = {desired.dump(), declared.secrets};
  job.patch = patch.dump();
  job.precondition = {object.item.uid, hex(hash128(object.item.properties))};
  return job;
}

DeleteJob Bench::delete_job(const Object& object) {
  const auto& item = object.item;
  return {new_key(), item.native_id, {item.uid, item.uid.empty() ? hex(hash128(item.properties)) : std::string()}};
}

JobResult Bench::run(const Object& object, const JobOperation& operation, std::optional<int> only) {
  return fleet_.run(systems_[object.system].target, object.type->name, operation, only);
}

/// Again where the contract says that it may help: nothing was done, or the same key does it once.
JobResult Bench::insist(const Object& object, const JobOperation& operation) {
  auto result = run(object, operation);
  for (int i = 1; i < kTries; ++i) {
    const auto* error = std::get_if<Error>(&result);
    if (error == nullptr || error_traits(error->code).retry == Retry::kNever) break;
    fleet_.have_workers(1);
    fleet_.pause(kFirstPause * (1 << std::min(i, 5)));
    result = run(object, operation);
  }
  return result;
}

MutationResult Bench::change(const Object& object, const JobOperation& operation) {
  const auto result = run(object, operation);
  if (const auto* done = std::get_if<MutationResult>(&result); done != nullptr) return *done;
  throw CheckFailed(std::string(operation_name(operation)) + " of " + object.what() + " " + object.declared.json +
                    " was answered with " + to_string(result));
}

void Bench::create(Object& object) {
  const auto done = change(object, create_job(object, new_key()));
  if (done.native_id.empty()) throw CheckFailed("a create succeeded and named no native id");
  object.item.native_id = done.native_id;
  remember(object);
  object.item = must_read(object);
}

Object Bench::make(const Fixture& fixture, const Scope& scope, std::string unique) {
  auto object = draft(fixture, scope, std::move(unique));
  create(object);
  return object;
}

void Bench::settle(Object& object, const std::string& key, JobResult last) {
  for (int i = 1; i < kTries; ++i) {
    const auto* error = std::get_if<Error>(&last);
    if (error == nullptr || error->code == Errc::kAlreadyExists) break;
    if (error_traits(error->code).retry == Retry::kNever) break;
    fleet_.have_workers(1);
    fleet_.pause(kFirstPause * (1 << std::min(i, 5)));
    last = run(object, create_job(object, key));
  }
  if (const auto* done = std::get_if<MutationResult>(&last)) {
    object.item.native_id = done->native_id;
  } else if (const auto* error = std::get_if<Error>(&last); error != nullptr && error->code == Errc::kAlreadyExists) {
    const auto ids = alike(object);  // it is there: which it is, its identity tells
    if (ids.empty()) throw CheckFailed("ALREADY_EXISTS, and no object is as declared: " + object.declared.json);
    object.item.native_id = ids.front();
  } else {
    throw CheckFailed("the same key again was answered with " + to_string(last));
  }
  remember(object);
}

void Bench::remember(const Object& object) {
  forget(object);
  made_.push_back(object);
}

void Bench::forget(const Object& object) {
  std::erase_if(made_, [&](const Object& each) {
    return each.system == object.system && each.type == object.type && each.item.native_id == object.item.native_id;
  });
}

void Bench::remove(Object& object) {
  auto job = delete_job(object);
  job.precondition = {};
  const auto result = insist(object, job);
  const auto* error = std::get_if<Error>(&result);
  if (error != nullptr && error->code != Errc::kNotFound) {
    throw CheckFailed("delete of " + object.what() + " was answered with " + to_string(*error));
  }
  forget(object);
}

}  // namespace muster::cli::conformance
