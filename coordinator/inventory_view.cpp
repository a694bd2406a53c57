#include "coordinator/inventory_view.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "coordinator/must.h"
#include "schema/subjects.h"

namespace muster {
namespace {

constexpr std::size_t kMaxAgreements = 1'000'000;  // of about 50 bytes
constexpr std::string_view kDigestKey = "digest_key";

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  std::string text(size * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, size);
  text.pop_back();
  return text;
}

}  // namespace

void each_within(Store& store, RowId row, const std::function<bool(std::string_view type)>& outlives,
                 const std::function<void(const ResourceRecord&)>& sink) {
  std::unordered_set<RowId> kept;
  for (const auto below : must(store.descendants(row))) {
    const auto record = must(store.one(below));
    if (!record) continue;
    if (kept.contains(record->parent) || outlives(record->type)) {
      kept.insert(below);
    } else if (record->state == ResourceState::kPresent || record->state == ResourceState::kStale) {
      sink(*record);
    }
  }
}

InventoryView::InventoryView(Store& store, Registry& registry, std::map<std::string, std::string> declared_targets,
                             std::map<std::string, std::string> renamed, Agreements& agreements)
    : store_(store),
      registry_(registry),
      targets_(std::move(declared_targets)),
      renamed_(std::move(renamed)),
      agreements_(agreements) {
  for (const auto& target : must(store_.targets())) {
    if (target.state == TargetState::kRemoved) continue;
    const auto name = name_of(target.name);
    targets_.emplace(name, target.ns);
    if (!target.system.empty()) systems_[name] = target.ns + " " + target.system;
  }
}

std::string InventoryView::kept_name(const std::string& target) const {
  const auto it = renamed_.find(target);
  return it == renamed_.end() ? target : it->second;
}

std::string InventoryView::name_of(std::string_view target) const {
  const auto it = std::ranges::find(renamed_, target, &decltype(renamed_)::value_type::second);
  return it == renamed_.end() ? std::string(target) : it->first;
}

std::vector<std::string> InventoryView::same_system(const std::string& target) {
  std::vector<std::string> others;
  const auto own = systems_.find(target);
  if (own == systems_.end()) return others;
  for (const auto& [name, system] : systems_) {
    if (name != target && system == own->second) others.push_back(name);
  }
  return others;
}

std::optional<std::string> InventoryView::target_namespace(const std::string& name) {
  const auto found = targets_.find(name);
  return found == targets_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<PlanningView::Known> InventoryView::of_stack(const std::string& stack) {
  std::vector<Known> all;
  must(store_.of_stack(stack, {}, [&](const ManagedView& row) {
    auto& known = all.emplace_back();
    known.row = row.row;
    known.target = name_of(row.target);
    known.type = row.type;
    known.native_id = row.native_id;
    known.stack = stack;
    known.name = row.name;
    known.managed = true;
    known.state = row.state;
    known.properties = row.properties;
    known.declared = row.declared;
    known.content = row.content;
    known.parent = row.parent;
  }));
  return all;
}

PlanningView::Known InventoryView::known_of(const ResourceView& row) {
  Known known;
  known.row = row.row;
  known.target = name_of(row.target);
  known.type = row.type;
  known.native_id = row.native_id;
  known.managed = row.managed;
  known.state = row.state;
  known.parent = row.parent;
  known.properties = row.properties;
  known.content = hash128(row.properties);
  if (!row.managed) return known;
  if (const auto claim = must(store_.claim(row.row))) {
    known.stack = claim->stack;
    known.name = claim->name;
    known.declared = claim->declared;
  }
  return known;
}

void InventoryView::each(const std::string& target, const std::string& type,
                         const std::function<void(const Known&)>& sink) {
  ResourceQuery query;
  query.target = kept_name(target);
  query.type = type;
  query.limit = static_cast<std::size_t>(-1);
  must(store_.query(query, [&](const ResourceView& row) {
    sink(known_of(row));
    return true;
  }));
}

std::optional<PlanningView::Known> InventoryView::find(const std::string& target, const std::string& type,
                                                       const std::string& native_id) {
  const auto row = must(store_.one(kept_name(target), type, native_id));
  if (!row || row->state == ResourceState::kVanished || row->state == ResourceState::kFiltered) return std::nullopt;
  return known_of(*row);
}

const TypeDescriptor* InventoryView::type(const std::string& name) {
  const auto [it, fresh] = types_.try_emplace(name);
  if (fresh) it->second = registry_.type(name);
  return it->second.type;
}

void InventoryView::each_within(RowId row, const std::function<void(const Known&)>& sink) {
  const auto outlives = [&](std::string_view name) {
    const auto* of = type(std::string(name));
    return of != nullptr && !of->contained;
  };
  muster::each_within(store_, row, outlives, [&](const ResourceRecord& record) {
    Known known;
    known.row = record.row;
    known.target = name_of(record.target);
    known.type = record.type;
    known.native_id = record.native_id;
    known.state = record.state;
    known.parent = record.parent;
    known.managed = record.managed;
    if (const auto claim = record.managed ? must(store_.claim(record.row)) : std::nullopt) {
      known.stack = claim->stack;
      known.name = claim->name;
    }
    sink(known);
  });
}

std::optional<Hash128> InventoryView::agreement(RowId row) {
  const auto it = agreements_.find(row);
  return it == agreements_.end() ? std::nullopt : std::optional(it->second);
}

void InventoryView::remember(RowId row, const Hash128& agreement) {
  if (agreements_.size() >= kMaxAgreements) agreements_.clear();
  agreements_[row] = agreement;
}

std::string InventoryView::digest(const std::string& value) {
  if (digests_given_) {
    const auto given = nlohmann::json::parse(value, nullptr, false);
    if (given.is_string()) return given.get<std::string>();
  }
  if (key_.empty()) {
    if (const auto kept = must(store_.meta(kDigestKey))) {
      key_ = *kept;
    } else {
      std::array<unsigned char, 32> key{};
      randombytes_buf(key.data(), key.size());
      key_ = hex_of(key.data(), key.size());
      must(store_.set_meta(kDigestKey, key_));
    }
  }
  std::array<unsigned char, 16> out{};
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const unsigned char*>(value.data()), value.size(),
                     reinterpret_cast<const unsigned char*>(key_.data()), key_.size());
  return "digest:" + hex_of(out.data(), out.size());
}

}  // namespace muster
