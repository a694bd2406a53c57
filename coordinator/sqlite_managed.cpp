#include <nlohmann/json.hpp>

#include "coordinator/sqlite_store_impl.h"
#include "sql/statements.h"

namespace muster {
namespace {

Result<std::vector<CommandRow>> commands_of(sqlite::Rows rows) {
  std::vector<CommandRow> found;
  while (rows.next()) {
    auto& command = found.emplace_back();
    command.id = CommandId(rows.string(0));
    command.kind = rows.string(1);
    command.state = rows.string(2);
    command.cancel = static_cast<Cancelled>(rows.integer(3));
    const auto stacks = nlohmann::json::parse(rows.text(4), nullptr, false);
    for (const auto& stack : stacks) command.stacks.push_back(stack.is_string() ? stack.get<std::string>() : "");
    command.plan = rows.string(5);
    command.created_at = rows.time(6);
    command.started_at = rows.optional_time(7);
    command.finished_at = rows.optional_time(8);
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<std::vector<OperationRow>> operations_of(sqlite::Rows rows) {
  std::vector<OperationRow> found;
  while (rows.next()) {
    auto& operation = found.emplace_back();
    operation.command = CommandId(rows.string(0));
    operation.step = static_cast<std::size_t>(rows.integer(1));
    operation.state = rows.string(2);
    operation.phase = static_cast<std::uint8_t>(rows.integer(3));
    operation.job = JobId(rows.string(4));
    operation.epoch = static_cast<std::uint32_t>(rows.integer(5));
    operation.uncertain = rows.flag(6);
    operation.request_id = rows.string(7);
    operation.native_id = rows.string(8);
    operation.code = rows.string(9);
    operation.message = rows.string(10);
    operation.name = rows.string(11);
    operation.target = rows.string(12);
    operation.type = rows.string(13);
    operation.creates = rows.flag(14);
  }
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

template <typename T>
Result<std::optional<T>> first_of(Result<std::vector<T>> found) {
  if (!found) return found.error();
  if (found->empty()) return std::optional<T>();
  return std::optional(std::move(found->front()));
}

}  // namespace

Result<void> SqliteStore::manage(RowId row, const Claim& claim) {
  write(sql::manage_resource, row, claim.stack, claim.name, claim.declared);
  return status();
}

Result<void> SqliteStore::release(RowId row) {
  write(sql::release_resource, row);
  return status();
}

Result<void> SqliteStore::set_drifted(RowId row, bool drifted) {
  write(sql::set_drifted, row, drifted);
  return status();
}

Result<void> SqliteStore::set_created(RowId row) {
  write(sql::set_created, row);
  return status();
}

Result<std::optional<Claim>> SqliteStore::claim(RowId row) {
  auto rows = select(sql::select_managed, row);
  std::optional<Claim> found;
  if (rows.next()) found = Claim{rows.string(0), rows.string(1), rows.string(2)};
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<void> SqliteStore::of_stack(std::string_view stack, std::string_view name,
                                   const std::function<void(const ManagedView&)>& sink) {
  auto rows = name.empty() ? select(sql::select_stack, stack) : select(sql::select_named, stack, name);
  while (rows.next()) {
    ManagedView view;
    view.row = rows.integer(0);
    view.target = rows.text(1);
    view.type = rows.text(2);
    view.native_id = rows.text(3);
    view.uid = rows.text(4);
    view.name = rows.text(5);
    view.state = static_cast<ResourceState>(rows.integer(6));
    view.drifted = rows.flag(7);
    view.properties = rows.text(8);
    view.declared = rows.text(9);
    view.content = hash_from_bytes(rows.text(10));
    view.parent = rows.integer(11);
    view.changed_at = rows.time(12);
    sink(view);
  }
  return rows.result();
}

Result<std::vector<std::pair<std::string, std::uint64_t>>> SqliteStore::stacks() {
  auto rows = select(sql::select_stacks);
  std::vector<std::pair<std::string, std::uint64_t>> found;
  while (rows.next()) found.emplace_back(rows.string(0), static_cast<std::uint64_t>(rows.integer(1)));
  if (auto done = rows.result(); !done) return done.error();
  return found;
}

Result<void> SqliteStore::put_command(const CommandRow& command) {
  write(sql::put_command, command.id.value, command.kind, command.state, command.cancel,
        nlohmann::json(command.stacks).dump(), command.plan, command.created_at, command.started_at,
        command.finished_at);
  return status();
}

Result<void> SqliteStore::set_command(const CommandRow& command) {
  write(sql::set_command, command.id.value, command.state, command.cancel, command.started_at, command.finished_at);
  return status();
}

Result<std::optional<CommandRow>> SqliteStore::command(const CommandId& id) {
  return first_of(commands_of(select(sql::select_command, id.value)));
}

Result<JsonText> SqliteStore::plan_of(const CommandId& id) {
  auto rows = select(sql::select_plan, id.value);
  JsonText plan = rows.next() ? rows.string(0) : JsonText();
  if (auto done = rows.result(); !done) return done.error();
  return plan;
}

Result<std::vector<CommandRow>> SqliteStore::commands(const CommandId& before, std::size_t limit) {
  return commands_of(select(sql::select_commands, before.value, limit));
}

Result<std::vector<CommandRow>> SqliteStore::unfinished_commands() {
  return commands_of(select(sql::select_unfinished_commands));
}

Result<void> SqliteStore::prune_commands(std::size_t keep, std::uint64_t keep_bytes) {
  std::vector<std::string> left;
  auto rows = select(sql::select_commands_to_prune, keep, keep_bytes);
  while (rows.next()) left.push_back(rows.string(0));
  if (auto done = rows.result(); !done) return done;
  for (const auto& command : left) {
    write(sql::drop_operations, command);
    write(sql::drop_creates_of_replacements, command);
    write(sql::drop_command, command);
  }
  return status();
}

Result<void> SqliteStore::put_operation(const OperationRow& operation) {
  write(sql::put_operation, operation.command.value, operation.step, operation.state, operation.phase,
        operation.job.value, operation.epoch, operation.uncertain, operation.request_id, operation.native_id,
        operation.code, operation.message, operation.name, operation.target, operation.type, operation.creates);
  return status();
}

Result<std::vector<OperationRow>> SqliteStore::operations(const CommandId& command, std::size_t first,
                                                          std::size_t limit) {
  return operations_of(select(sql::select_operations, command.value, first, limit));
}

Result<void> SqliteStore::rename_target(std::string_view was, std::string_view is) {
  write(sql::rename_in_claims, was, is);
  write(sql::rename_unsettled, was, is);
  write(sql::rename_in_operations, was, is);
  return status();
}

Result<std::string> SqliteStore::unsettled(std::string_view place) {
  auto rows = select(sql::select_unsettled, place);
  std::string key = rows.next() ? rows.string(0) : std::string();
  if (auto done = rows.result(); !done) return done.error();
  return key;
}

Result<void> SqliteStore::set_unsettled(std::string_view place, std::string_view key) {
  if (key.empty()) {
    write(sql::drop_unsettled, place);
  } else {
    write(sql::put_unsettled, place, key);
  }
  return status();
}

Result<std::optional<OperationRow>> SqliteStore::operation_of(const JobId& job) {
  return first_of(operations_of(select(sql::select_operation_of, job.value)));
}

Result<void> SqliteStore::put_create_of_replacement(const OperationRow& operation) {
  write(sql::put_create_of_replacement, operation.job.value, operation.command.value, operation.step,
        operation.native_id);
  return status();
}

}  // namespace muster
