#include <algorithm>
#include <sstream>

#include "notes.h"

// guide: todo
namespace {

constexpr const char* kTodoSchema = R"({
  "type": "object",
  "properties": {"note": {"type": "string"}, "what": {"type": "string"}, "done": {"type": "boolean"}}
})";

muster::Result<std::vector<muster::Resource>> todos_of(const muster::TargetInfo& target, const std::string& note) {
  const auto text = read_text(target, note);
  if (!text) return text.error();
  std::vector<muster::Resource> todos;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("[ ] ") && !line.starts_with("[x] ")) continue;
    const std::string what = line.substr(4);
    todos.push_back({note + "/" + what, {{"note", note}, {"what", what}, {"done", line[1] == 'x'}}});
  }
  std::ranges::stable_sort(todos, {}, &muster::Resource::native_id);
  const auto twice = std::ranges::unique(todos, {}, &muster::Resource::native_id);  // one page, one id
  todos.erase(twice.begin(), twice.end());
  return todos;
}

muster::Result<muster::ListPage> list_todos(const muster::ListRequest& request, muster::JobContext&) {
  auto todos = todos_of(request.target, request.parent->parameters.at("note"));
  if (!todos) return todos.error();
  return page_of(std::move(*todos), request);
}

muster::Result<muster::Resource> read_todo(const muster::ReadRequest& request, muster::JobContext&) {
  const auto todos = todos_of(request.target, request.native_id.substr(0, request.native_id.find('/')));
  if (!todos) return todos.error();
  const auto todo = std::ranges::find(*todos, request.native_id, &muster::Resource::native_id);
  if (todo == todos->end()) return muster::not_found();
  return *todo;
}

}  // namespace

void add_todos(muster::Plugin& plugin) {
  plugin
      .type({.name = "NOTES::Todo",
             .schema = kTodoSchema,
             .parent = "NOTES::Note",
             .parent_parameters = {{.name = "note", .property = "name"}},
             .list_gives = muster::ListGives::kProperties,
             .label_query = "$.what"})
      .list(list_todos)
      .read(read_todo);
}
// end: todo
