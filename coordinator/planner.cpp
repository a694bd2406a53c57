#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "coordinator/adoption.h"
#include "coordinator/claim.h"
#include "coordinator/deletions.h"
#include "coordinator/difference.h"
#include "coordinator/json_patch.h"
#include "coordinator/plan.h"
#include "coordinator/references.h"
#include "coordinator/stack_rows.h"
#include "coordinator/suggestion.h"
#include "coordinator/type_rules.h"
#include "schema/subjects.h"

namespace muster {
namespace {

using Json = nlohmann::json;

class Planner {
 public:
  Planner(const Declaration& declaration, ApplyMode mode, PlanningView& view, PlanClaims& claims)
      : declaration_(declaration),
        mode_(mode),
        view_(view),
        stack_(view.of_stack(declaration.stack)),
        adoption_(view, declaration.stack, claims) {}

  PlanResult run() {
    nodes_.reserve(declaration_.resources.size());
    by_name_.reserve(declaration_.resources.size());
    const bool planned = mode_ == ApplyMode::kDestroy || plan_declared();
    const bool deletes = mode_ == ApplyMode::kReconcile || mode_ == ApplyMode::kDestroy;
    if (deletes && planned) plan_leaving();
    return std::move(result_);
  }

 private:
  struct Node {
    const DeclaredResource* resource = nullptr;
    std::set<std::string> needs;  // names
    std::vector<std::size_t> dependents;
    std::vector<std::size_t> left;     // what it needed until now
    std::vector<std::size_t> leavers;  // who needed it until now
    std::size_t open = 0;              // needs that are not planned yet
    std::size_t leaving = 0;           // leavers that are not planned yet
    std::optional<std::size_t> step;
    const PlanningView::Known* known = nullptr;  // what there is of it
    JsonText claim;                              // what the row is to say of it
    bool says_so = false;                        // it says so already
    Json values;                                 // its properties as far as they are known, for those who refer to it
  };

  void mistake(const std::string& resource, std::string message, std::string pointer = {}) {
    result_.mistakes.push_back({declaration_.stack, resource, std::move(pointer), std::move(message)});
  }
  /// What the plan does not vouch for.
  void unchecked(const std::string& resource, std::string message, std::string pointer = {}) {
    result_.unchecked.push_back({declaration_.stack, resource, std::move(pointer), std::move(message)});
  }

  /// Whether each resource has its step; some of these may be mistakes.
  bool plan_declared() {
    collect();
    if (!result_.mistakes.empty()) {  // what the schemas say beside is of use all the same
      for (const auto& node : nodes_) {
        const auto* rules = rules_of(node.resource->type);
        std::vector<std::string> holes;
        for (const auto& hole : node.resource->holes) holes.push_back(hole.pointer);
        if (rules != nullptr) validate(*node.resource, *rules, Json::parse(node.resource->properties), holes);
      }
      tell_cycle();
      return false;
    }
    note_leavers();
    std::deque<std::size_t> ready, held;  // held: but for their leavers
    const auto look = [&](std::size_t at) {
      if (nodes_[at].open == 0) (nodes_[at].leaving == 0 ? ready : held).push_back(at);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) look(i);
    std::size_t planned = 0;
    const auto plan_next = [&](std::size_t at) {
      plan_one(nodes_[at], at);
      ++planned;
      for (const auto dependent : nodes_[at].dependents) {
        --nodes_[dependent].open;
        look(dependent);
      }
      for (const auto other : nodes_[at].left) {
        if (--nodes_[other].leaving == 0 && !nodes_[other].step) look(other);
      }
    };
    while (!ready.empty() || !held.empty()) {
      auto& queue = ready.empty() ? held : ready;  // that these wait for each other is no reason to wait
      const auto at = queue.front();
      queue.pop_front();
      if (!nodes_[at].step) plan_next(at);
    }
    if (planned < nodes_.size()) tell_cycle();
    if (planned == nodes_.size() && !moving_.empty()) tell_same();
    return planned == nodes_.size();
  }

  /// What is replaced by another object may be declared as the one that another resource has, or is to have.
  void tell_same() {
    std::multimap<std::string, std::size_t> objects;
    const auto object_of = [&](const Node& node) {
      const auto values = node.values.is_null() ? Json::parse(node.known->properties) : node.values;
      const auto& resource = *node.resource;
      return resource.target + ' ' + resource.type + ' ' + rules_of(resource.type)->identity_of(values);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) objects.emplace(object_of(nodes_[i]), i);
    for (const auto index : moving_) {
      const auto object = object_of(nodes_[index]);
      const auto [first, last] = objects.equal_range(object);
      const auto other = std::find_if(first, last, [&](const auto& each) { return each.second != index; });
      if (object.ends_with(' ') || other == last) continue;  // nothing tells objects of its type apart
      mistake(nodes_[index].resource->name, "would be replaced, and be the same object as resource " +
                                                nodes_[other->second].resource->name +
                                                " of this stack: declare it once");
    }
  }

  /// Who needed something until now, and does not any more, has turned away from it before that is replaced. What lies
  /// in it goes with it in any case.
  void note_leavers() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto& node = nodes_[i];
      const auto before = node.known == nullptr || node.says_so ? std::nullopt : claimed(node.known->declared);
      for (const auto& need : before ? before->needs() : std::set<std::string>()) {
        const auto found = by_name_.find(need);
        if (found == by_name_.end() || found->second == i || node.needs.contains(need)) continue;
        if (lies_in(node.known->row, nodes_[found->second].known)) continue;
        nodes_[i].left.push_back(found->second);
        nodes_[found->second].leavers.push_back(i);
        ++nodes_[found->second].leaving;
      }
    }
  }

  bool lies_in(RowId row, const PlanningView::Known* around) {
    bool found = false;
    const auto compare_rows = [&](const auto& inner) { found = found || inner.row == row; };
    if (around != nullptr) view_.each_within(around->row, compare_rows);
    return found;
  }

  /// One of the cycles, if there are any.
  void tell_cycle() {
    const auto cycle = cycle_of(declaration_.resources);
    if (!cycle.empty()) mistake(cycle.front(), "the references make a cycle: " + cycle_text(cycle));
  }

  void collect() {
    for (const auto& resource : declaration_.resources) {
      if (!by_name_.emplace(resource.name, nodes_.size()).second) {
        mistake(resource.name, "the name stands twice in stack " + declaration_.stack);
        continue;
      }
      auto& node = nodes_.emplace_back();
      node.resource = &resource;
      node.needs = resource.needs();
      if (const auto* rules = rules_of(resource.type)) {
        node.known = own(resource);
        node.claim = claim_text(resource, rules->rules, [&](const auto& value) { return view_.digest(value); });
        node.says_so = says_so(node);
      }
      check(node);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const auto& need : nodes_[i].needs) {
        const auto found = by_name_.find(need);
        if (found == by_name_.end()) {
          mistake(nodes_[i].resource->name, "no resource is named '" + need + "' in stack " + declaration_.stack);
          continue;
        }
        ++nodes_[i].open;
        auto& other = nodes_[found->second];
        other.dependents.push_back(i);
        if (need == nodes_[i].resource->parent && other.resource->target != nodes_[i].resource->target) {
          mistake(nodes_[i].resource->name, "cannot lie in " + need + ", which is on target " + other.resource->target);
        }
      }
      for (const auto& hole : nodes_[i].resource->holes) check_references(*nodes_[i].resource, hole);
    }
  }

  /// A reference to what the other's type does not have, or nobody can read, would fail only when the other is done.
  void check_references(const DeclaredResource& resource, const Hole& hole) {
    for (const auto& part : hole.parts) {
      const auto named = part.kind == TextPart::Kind::kResource ? by_name_.find(part.text) : by_name_.end();
      if (named == by_name_.end()) continue;
      const auto& other = nodes_[named->second];
      const auto* const rules = rules_of(other.resource->type);
      if (rules != nullptr && is_confidential(rules->rules, pointer_to(part.path))) {
        mistake(resource.name, part.text + '.' + part.path + " is never read back, so that nothing can refer to it",
                hole.pointer);
        continue;
      }
      const auto property = part.path.substr(0, part.path.find_first_of(".["));
      if (rules == nullptr || rules->rules.properties.empty() || rules->rules.properties.contains(property)) continue;
      if (other.known != nullptr && Json::parse(other.known->properties).contains(property)) continue;
      auto message =
          part.text + " is " + other.resource->type + ", whose type says nothing of a property '" + property + "'";
      if (!rules->rules.closed) {
        unchecked(resource.name, std::move(message), hole.pointer);
        continue;
      }
      std::vector<std::string_view> names;
      for (const auto& [name, rule] : rules->rules.properties) names.push_back(name);
      mistake(resource.name, message + "; " + suggestion(property, names), hole.pointer);
    }
  }

  /// What the stack has under this name. What a command made, and did not come to say, may stand beside what another
  /// made since: the newest that is there counts, and the others leave.
  const PlanningView::Known* own(const DeclaredResource& resource) const {
    const PlanningView::Known* best = nullptr;
    for (const auto* known : stack_.named(resource.name)) {
      if (known->type != resource.type || known->target != resource.target) continue;
      if (best == nullptr || best->state == ResourceState::kMissing || known->state != ResourceState::kMissing) {
        best = known;
      }
    }
    return best;
  }

  [[nodiscard]] bool says_so(const Node& node) const {
    return node.known != nullptr && node.known->managed && node.known->name == node.resource->name &&
           node.known->declared == node.claim;
  }

  void check(const Node& node) {
    const auto& resource = *node.resource;
    const auto ns = view_.target_namespace(resource.target);
    if (!ns) mistake(resource.name, "no target is named '" + resource.target + "'");
    const auto* rules = rules_of(resource.type);
    if (rules == nullptr) {
      mistake(resource.name, "no plugin serves type '" + resource.type + "': `muster types` lists them");
      return;
    }
    if (ns && namespace_of(resource.type) != *ns) {
      mistake(resource.name, "target " + resource.target + " is of namespace " + *ns + ", and has no " + resource.type);
    }
    if (!rules->can(Operation::kCreate)) {
      mistake(resource.name, resource.type + " cannot be created: it can only be looked at");
    }
    if (node.says_so) return;  // it was applied like this
    check_id(node);
    check_declared(resource, *rules, [&](std::string message, std::string pointer) {
      mistake(resource.name, std::move(message), std::move(pointer));
    });
  }

  /// Who names the id of an object wants that one: that the stack has another under this name is no answer, and to
  /// delete the one that is meant, as what no name stands for any more, would be the worst.
  void check_id(const Node& node) {
    const auto& resource = *node.resource;
    const auto* const known = node.known;
    if (known == nullptr || known->state == ResourceState::kMissing) return;
    if (resource.native_id.empty() || resource.native_id == known->native_id) return;
    const auto other = view_.find(resource.target, resource.type, resource.native_id);
    if (!other || other->state == ResourceState::kMissing) return;
    // What it has taken the place of goes in any case.
    if (other->stack == declaration_.stack && declared_name(other->name) == resource.name) return;
    mistake(resource.name, "is " + known->native_id + " on " + resource.target + ", and not " + other->native_id +
                               ", which is there as well: give that another name, or forget " + resource.name +
                               " first");
  }

  /// nullptr: nobody serves the type.
  const TypeRules* rules_of(const std::string& name) {
    const auto known = types_.find(name);
    if (known != types_.end()) return known->second ? &*known->second : nullptr;
    auto& made = types_[name];
    if (const auto* const type = view_.type(name)) made = TypeRules::of(*type);
    return made ? &*made : nullptr;
  }

  void plan_one(Node& node, std::size_t index) {
    const auto& resource = *node.resource;
    const auto& rules = *rules_of(resource.type);
    PlanStep step;
    step.stack = declaration_.stack;
    step.name = resource.name;
    step.target = resource.target;
    step.type = resource.type;
    step.declared = index;
    for (const auto& need : node.needs) {
      if (const auto before = nodes_[by_name_.at(need)].step) step.after.push_back(*before);
    }
    const auto agreement = agreement_of(node, rules);
    if (agreement && agrees(node, rules, *agreement)) {
      take(resource, *node.known);
      step.row = node.known->row;
      step.native_id = node.known->native_id;
      step.content = node.known->content;
      return add(node, std::move(step));
    }
    auto declared = Json::parse(resource.properties);
    std::vector<std::string> unknown;
    for (const auto& hole : resource.holes) fill(declared, hole, unknown);
    if (node.known == nullptr) {
      node.known = adoption_.find(resource, rules, declared, unknown);
      node.says_so = says_so(node);
    } else if (node.known->state == ResourceState::kMissing) {
      const auto* const instead = adoption_.find(resource, rules, declared, unknown);
      if (instead != nullptr && !instead->managed && instead->state != ResourceState::kMissing) {
        taken_.insert(node.known->row);  // what is adopted has its name
        node.known = instead;
        node.says_so = false;
      }
    }
    const auto* const known = node.known;
    const bool alone = known == nullptr || take(resource, *known);
    if (alone && (known == nullptr || !known->managed)) {  // what is in no stack yet
      for (auto& each : adoption_.claim(resource, rules, declared, unknown, known)) {
        mistake(resource.name, std::move(each));
      }
    }
    if (!node.says_so) validate(resource, rules, declared, unknown);
    if (known != nullptr && known->managed && known->stack != declaration_.stack) {
      mistake(resource.name, known->native_id + " belongs to stack " + known->stack + " already, as " + known->name);
    }
    Json there = Json::object();
    if (known == nullptr || known->state == ResourceState::kMissing) {
      step.action = StepAction::kCreate;
      if (known != nullptr) {
        step.row = known->row;
        step.reason = "it is gone";
      }
    } else {
      there = Json::parse(known->properties);
      decide(step, resource, rules, *known, there, declared, unknown);
      // What is put back may need what has drifted, too, and is declared to be left like that.
      const bool left = mode_ == ApplyMode::kPutBack && resource.on_drift != OnDrift::kRevert;
      if (left && step.action == StepAction::kUpdate) return leave(node, std::move(step), std::move(there));
      if (step.action == StepAction::kReplace && known->managed && identity_is_known(rules, unknown)) {
        const auto why = adoption_.in_the_way(resource, rules, there, declared);
        if (!why.empty()) mistake(resource.name, "would be replaced, and " + why);
        if (rules.identity_of(declared) != rules.identity_of(there)) moving_.push_back(index);
      }
    }
    if (known != nullptr && known->state == ResourceState::kStale) {
      unchecked(resource.name, "it may be another by now: a run or a change of it has failed, or its target changed");
    }
    // What only the system sets stays as it is unless the object is made anew, and so does what its row says.
    const bool stays = step.action != StepAction::kCreate && step.action != StepAction::kReplace;
    const bool absorbs = step.action != StepAction::kUnchanged && resource.on_drift == OnDrift::kAbsorb;
    if (!node.says_so || !stays || absorbs) step.claim = std::move(node.claim);  // drift may change it until then
    if (agreement && step.action == StepAction::kUnchanged && unknown.empty()) view_.remember(known->row, *agreement);
    if (step.action == StepAction::kUnchanged && node.dependents.empty()) return add(node, std::move(step));
    node.values = stays ? std::move(there) : Json::object();
    put_declared(rules.rules, node.values, declared, step.patch, unknown);
    add(node, std::move(step));
  }

  /// It stays as it is, also for those that refer to it.
  void leave(Node& node, PlanStep step, Json there) {
    step.action = StepAction::kUnchanged;
    step.patch = "[]";
    node.values = std::move(there);
    add(node, std::move(step));
  }

  /// One row is one resource's.
  bool take(const DeclaredResource& resource, const PlanningView::Known& known) {
    if (taken_.insert(known.row).second) return true;
    const auto other = std::ranges::find(result_.plan.steps, known.row, &PlanStep::row);
    if (other == result_.plan.steps.end()) return true;  // it is gone, and who had it adopts another in its place
    mistake(resource.name, known.native_id + " is resource " + other->name + " of this stack already");
    return false;
  }

  void add(Node& node, PlanStep step) {
    node.step = result_.plan.steps.size();
    if (step.action == StepAction::kReplace) {
      for (const auto leaver : node.leavers) {
        const auto& its = nodes_[leaver].step;
        if (!its || result_.plan.steps[*its].action == StepAction::kUnchanged) continue;
        if (std::ranges::find(step.after, *its) == step.after.end()) step.after.push_back(*its);
      }
      view_.each_within(step.row, [&](const auto& inner) { taken_along_[inner.row] = *node.step; });
    }
    result_.plan.steps.push_back(std::move(step));
  }

  /// Stands for all that a comparison would look at, where the resource is known as it is declared: while that is the
  /// same, so is what the comparison says. None: something is new.
  [[nodiscard]] std::optional<Hash128> agreement_of(const Node& node, const TypeRules& rules) const {
    const auto* const known = node.known;
    if (!node.says_so || known->stack != declaration_.stack || known->state != ResourceState::kPresent ||
        taken_along_.contains(known->row)) {
      return std::nullopt;
    }
    std::string all = hex(hash128(node.claim)) + hex(rules.schema_hash) + hex(known->content);
    if (known->parent != 0) {  // where it lies, and where what it names is
      all += std::to_string(known->parent);
      for (const auto& need : node.needs) {
        const auto* const other = nodes_[by_name_.at(need)].known;
        all += ' ' + std::to_string(other == nullptr ? 0 : other->row);
      }
    }
    for (const auto& hole : node.resource->holes) {
      for (const auto& part : hole.parts) {
        if (part.kind != TextPart::Kind::kResource) continue;
        const auto& other = nodes_[by_name_.at(part.text)];
        if (result_.plan.steps[*other.step].action != StepAction::kUnchanged) return std::nullopt;
        all += hex(other.known->content);
      }
    }
    return hash128(all);
  }

  /// Whether nothing differs, as far as that can be told without a comparison. Most of many resources just stand there.
  bool agrees(const Node& node, const TypeRules& rules, const Hash128& agreement) {
    const auto& known = *node.known;
    if (view_.agreement(known.row) == agreement) return true;
    const auto& declared = node.resource->properties;
    if (known.parent != 0 || !node.resource->holes.empty() || may_hold_write_only(rules.rules, declared)) return false;
    if (!has_members(known.properties, declared)) return false;
    view_.remember(known.row, agreement);
    return true;
  }

  /// With examples where values are not known yet.
  void validate(const DeclaredResource& resource, const TypeRules& rules, Json declared,
                const std::vector<std::string>& unknown) {
    const auto example = [&](const std::string& name, const std::string& path) -> std::optional<Json> {
      const auto named = by_name_.find(name);
      const auto* of = named == by_name_.end() ? nullptr : rules_of(nodes_[named->second].resource->type);
      if (of == nullptr || of->type->examples.empty()) return std::nullopt;
      return value_at(Json::parse(of->type->examples.front(), nullptr, false), path);
    };
    check_schema(
        resource, rules, std::move(declared), unknown, example,
        [&](std::string message, std::string pointer) { mistake(resource.name, std::move(message), pointer); },
        [&](std::string message, std::string pointer) { unchecked(resource.name, std::move(message), pointer); });
  }

  /// Puts the value of a hole in where it is known; else its place goes to `unknown`.
  void fill(Json& declared, const Hole& hole, std::vector<std::string>& unknown) {
    auto value = resolve(hole, [&](const std::string& name, const std::string& path) -> std::optional<Json> {
      auto& other = nodes_[by_name_.at(name)];
      if (other.values.is_null()) other.values = Json::parse(other.known->properties);  // all as it is declared
      return value_at(other.values, path);
    });
    if (value && !value->is_null()) {
      declared[Json::json_pointer(hole.pointer)] = std::move(*value);
    } else {
      unknown.push_back(hole.pointer);
    }
  }

  void decide(PlanStep& step, const DeclaredResource& resource, const TypeRules& rules,
              const PlanningView::Known& known, const Json& there, const Json& declared,
              const std::vector<std::string>& unknown) {
    step.row = known.row;
    step.native_id = known.native_id;
    step.content = known.content;
    auto difference = compare(rules.rules, there, declared, unknown);
    for (const auto& pointer : unknown) unknown_value(difference, rules, resource, known, declared, pointer);
    unread_values(difference, rules, resource, known, declared);
    step.patch = difference.patch.dump();
    if (const auto around = taken_along_.find(known.row); around != taken_along_.end()) {
      step.with = around->second;
      if (std::ranges::find(step.after, *step.with) == step.after.end()) step.after.push_back(*step.with);
    }
    const auto elsewhere = known.managed ? why_elsewhere(step, resource, rules, known) : std::string();
    if (!difference.create_only.empty() || !elsewhere.empty()) {
      step.action = StepAction::kReplace;
      step.reason =
          difference.create_only.empty() ? elsewhere : "cannot be changed in place: " + joined(difference.create_only);
      if (!known.managed) {
        mistake(resource.name, known.native_id + " is there and is another: " + step.reason + "; declare it as it is");
      } else if (resource.protect) {
        mistake(resource.name, "is protected, and would have to be replaced: " + step.reason +
                                   "; declare it as it is, or apply it without `protect` first");
      } else if (!rules.can(Operation::kDelete)) {
        mistake(resource.name, "would have to be replaced, and " + resource.type + " cannot be deleted");
      }
    } else if (!known.managed) {
      step.action = StepAction::kAdopt;
      step.reason = "it is there already";
    } else {
      step.action = difference.patch.empty() ? StepAction::kUnchanged : StepAction::kUpdate;
      if (known.name != resource.name) step.reason = "was " + known.name;
    }
    if (!difference.patch.empty() && step.action != StepAction::kReplace && !rules.can(Operation::kUpdate)) {
      mistake(resource.name, resource.type + " cannot be changed, and differs: " + step.patch);
    }
  }

  /// Why an object cannot stay in the place where it lies; empty: it can.
  std::string why_elsewhere(PlanStep& step, const DeclaredResource& resource, const TypeRules& rules,
                            const PlanningView::Known& known) {
    step.moves = moves(resource, rules, known);
    if (step.with) return "lies in " + result_.plan.steps[*step.with].name + ", which is replaced";
    if (known.parent == 0) return {};
    for (const auto& need : rules.type->contained ? resource.needs() : std::set<std::string>()) {
      const auto& around = nodes_[by_name_.at(need)];
      const auto* const place = around.known;
      const bool takes = around.resource->type == rules.type->parent && around.resource->target == resource.target;
      if (!takes && mode_ != ApplyMode::kReconcile) continue;  // where it lies stays, and this is no other place for it
      for (const auto& name : {need, need + std::string(kReplaced)}) {
        const auto is_around = [&](const auto* row) { return row->row == known.parent; };
        const bool goes = std::ranges::any_of(stack_.named(name), is_around);
        if (goes && (place == nullptr || place->row != known.parent)) return "lies in another " + need + ", which goes";
      }
    }
    return step.moves ? "is to lie in " + resource.parent : std::string();
  }

  /// Whether it is declared in another thing than before, and than the one that it lies in, or in one that is not there
  /// yet. Where neither is so it lies where the system says.
  bool moves(const DeclaredResource& resource, const TypeRules& rules, const PlanningView::Known& known) const {
    if (known.parent == 0 || resource.parent.empty()) return false;
    const auto before = claimed(known.declared);
    const auto& node = nodes_[by_name_.at(resource.parent)];
    if (!before || node.resource->type != rules.type->parent) return false;
    return node.known == nullptr || (before->parent != resource.parent && node.known->row != known.parent);
  }

  /// A value that is known only when others are done: a change, unless it was declared by the same references before
  /// and nothing that it refers to changes. Of an array that has one nothing was compared: it changes as a whole.
  void unknown_value(Difference& difference, const TypeRules& rules, const DeclaredResource& resource,
                     const PlanningView::Known& known, const Json& declared, const std::string& pointer) {
    const auto hole = std::ranges::find(resource.holes, pointer, &Hole::pointer);
    const auto before = claimed(known.declared);
    const bool as_before = before && std::ranges::find(before->holes, *hole) != before->holes.end();
    if (as_before && !refers_to_change(*hole)) return;
    const auto whole = hole->secret() ? pointer : outermost_array(declared, pointer);
    difference.put_anew(rules.rules, declared, pointer, whole);
  }

  bool refers_to_change(const Hole& hole) {
    return std::ranges::any_of(hole.parts, [&](const TextPart& part) {
      if (part.kind != TextPart::Kind::kResource) return false;
      const auto step = nodes_[by_name_.at(part.text)].step;
      return step && result_.plan.steps[*step].action != StepAction::kUnchanged;
    });
  }

  /// Write-only values cannot be compared with what is there, but with what was declared before. Where one lies in an
  /// array, the array is what changes: its elements need not stand where they are declared.
  void unread_values(Difference& difference, const TypeRules& rules, const DeclaredResource& resource,
                     const PlanningView::Known& known, const Json& declared) {
    if (!may_hold_write_only(rules.rules, resource.properties)) return;
    const auto before = claimed(known.declared);
    const auto old = before ? Json::parse(before->properties) : Json::object();
    for (const auto& pointer : write_only_in(rules.rules, declared)) {
      if (const auto hole = std::ranges::find(resource.holes, pointer, &Hole::pointer); hole != resource.holes.end()) {
        if (!hole->secret()) unknown_value(difference, rules, resource, known, declared, pointer);
        continue;
      }
      const Json::json_pointer at(pointer);
      if (old.contains(at) && old[at] == view_.digest(declared[at].dump())) continue;
      difference.put_anew(rules.rules, declared, pointer, outermost_array(declared, pointer));
    }
  }

  void plan_leaving() {
    const auto leaving = stack_.all([&](const auto& known) { return !taken_.contains(known.row); });
    plan_deletions(leaving, mode_ == ApplyMode::kDestroy ? "the stack is destroyed" : "it is not declared any more",
                   result_);
    for (auto& step : result_.plan.steps) {
      if (step.action != StepAction::kDelete) continue;
      if (by_name_.contains(step.name)) step.reason = "another has its name";
      if (step.name.ends_with(kReplaced)) step.reason = "it was replaced";
    }
  }

  const Declaration& declaration_;
  const ApplyMode mode_;
  PlanningView& view_;
  PlanResult result_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> by_name_;
  const StackRows stack_;
  std::unordered_map<RowId, std::size_t> taken_along_;  // by row: the step that makes anew what it lies in
  std::vector<std::size_t> moving_;                     // indices of what is replaced by what has another identity
  std::unordered_set<RowId> taken_;                     // rows of declared resources, also under a new name
  std::map<std::string, std::optional<TypeRules>> types_;
  Adoption adoption_;
};

}  // namespace

PlanResult make_plan(const Declaration& declaration, ApplyMode mode, PlanningView& view, PlanClaims& claims) {
  return Planner(declaration, mode, view, claims).run();
}

}  // namespace muster
