#include <algorithm>
#include <ostream>

#include "coordinator/cli/verbs.h"

namespace muster::cli {
namespace {

constexpr std::uint64_t kPage = 1000;  // items at most that one request asks for

std::string state_text(const Json& resource) {
  const auto drifted = resource.find("drifted");
  const bool drift = drifted != resource.end() && drifted->is_boolean() && drifted->get<bool>();
  return field(resource, "state") + (drift ? ", drifted" : "");
}

/// The label, where it tells more than the native id.
std::string other_label(const Json& resource) {
  std::string label = field(resource, "label");
  return label == field(resource, "native_id") ? std::string() : label;
}

std::string cause_text(const Json& entry) {
  const auto was = field(entry, "was");
  return field(entry, "cause") + (was.empty() ? "" : " from " + was);
}

/// What names one resource in a request.
Result<Json> name_of(const std::string& which) {
  const std::size_t first = which.find('/');
  if (which.empty()) return Error{Errc::kInvalidRequest, "expected ID or TARGET/TYPE/NATIVE-ID, found nothing"};
  if (first == std::string::npos) return Json{{"id", which}};
  const std::size_t second = which.find('/', first + 1);
  if (second == std::string::npos || second + 1 == which.size()) {
    return Error{Errc::kInvalidRequest, "expected ID or TARGET/TYPE/NATIVE-ID, found " + escape(which)};
  }
  return Json{{"target", which.substr(0, first)},
              {"type", which.substr(first + 1, second - first - 1)},
              {"native_id", which.substr(second + 1)}};
}

void show_resource(Screen& screen, const Json& resource) {
  Json rows = Json::array();
  const auto row = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) rows.push_back({{"name", name}, {"value", value}});
  };
  for (const char* name : {"id", "target", "type", "native_id", "uid", "label"}) row(name, field(resource, name));
  row("state", state_text(resource));
  if (const auto parent = resource.find("parent"); parent != resource.end() && parent->is_object()) {
    row("parent", field(*parent, "type") + " " + field(*parent, "native_id"));
  }
  for (const char* name : {"managed", "stack", "first_seen", "last_seen", "changed_at", "version"}) {
    row(name, field(resource, name));
  }
  for (const Json& one : rows) {
    const std::string name = field(one, "name");
    screen.out << name << ':' << std::string(12 - name.size(), ' ') << escape(field(one, "value")) << '\n';
  }
  screen.out << "properties:\n" << to_yaml(resource.value("properties", Json::object()), 2);
  if (const auto history = resource.find("history"); history != resource.end()) {
    screen.out << "history:\n";
    write_table(screen,
                {column("VERSION", "version", Align::kRight),
                 column("AT", "at"),
                 {"CAUSE", cause_text},
                 column("PATCH", "patch")},
                *history);
  }
}

}  // namespace

int report(Screen& screen, const Error& error) {
  screen.err << "muster: " << escape(error.message) << std::endl;
  return exit_status(error);
}

int resources(Client& client, Screen& screen, const ResourcesOptions& options) {
  Json request = Json::object();
  const auto given = [&](const char* name, const std::string& value) {
    if (!value.empty()) request[name] = value;
  };
  given("text", options.text);
  given("target", options.target);
  given("type", options.type);
  given("stack", options.stack);
  given("state", options.state);
  if (options.managed) request["managed"] = *options.managed;
  if (options.drifted) request["drifted"] = true;
  const bool filtered = !request.empty();
  if (options.limit > 0) request["limit"] = std::min(options.limit, kPage);
  std::vector<Column> columns{id_column("ID", "id"),  column("TARGET", "target"),
                              column("TYPE", "type"), column("NATIVE ID", "native_id"),
                              {"LABEL", other_label}, {"STATE", state_text}};
  if (options.managed.value_or(false)) columns.push_back(column("STACK", "stack"));
  ListWriter list(screen, std::move(columns),
                  filtered ? "no resource matches" : "no resources yet: `muster discover --wait` takes an inventory");
  std::uint64_t left = options.limit;
  bool writable = true;
  const auto done = each_item(
      client, "resources", request,
      [&](const std::string& item) {
        list.add(item);
        return writable && (options.limit == 0 || --left > 0);
      },
      [&] { writable = list.flush(); });
  if (!done) {
    list.flush();
    return report(screen, done.error());
  }
  return list.finish() ? 0 : 1;
}

int resource(Client& client, Screen& screen, const std::string& which, bool history, const std::string& at) {
  auto request = name_of(which);
  if (!request) return report(screen, request.error());
  if (history) (*request)["history"] = true;
  if (!at.empty()) (*request)["at"] = at;
  auto answer = client.ask("resource", *request);
  if (answer) answer = rest_of(client, "resource", std::move(*request), "history", std::move(*answer));
  if (!answer) return report(screen, answer.error());
  write_answer(screen, *answer, [&](const Json& object) { show_resource(screen, object); });
  return 0;
}

int counts(Client& client, Screen& screen) {
  ListWriter list(screen,
                  {column("TARGET", "target"), column("TYPE", "type"), column("COUNT", "count", Align::kRight),
                   column("STALE", "stale", Align::kRight)},
                  "no resources");
  const auto done = each_item(client, "counts", Json::object(), [&](const std::string& item) {
    list.add(item);
    return true;
  });
  if (!done) return report(screen, done.error());
  return list.finish() ? 0 : 1;
}

}  // namespace muster::cli
