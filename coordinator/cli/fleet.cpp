#include <algorithm>
#include <map>
#include <ostream>

#include "coordinator/cli/editor_schema.h"
#include "coordinator/cli/verbs.h"

namespace muster::cli {
namespace {

int list_all(Client& client, Screen& screen, const char* verb, const Json& request, std::vector<Column> columns,
             const char* empty) {
  ListWriter list(screen, std::move(columns), empty);
  const auto done = each_item(client, verb, request, [&](const std::string& item) {
    list.add(item);
    return true;
  });
  if (!done) return report(screen, done.error());
  return list.finish() ? 0 : 1;
}

Json of_namespace(const std::string& ns) {
  return ns.empty() ? Json::object() : Json{{"namespace", ns}};
}

/// A number, or how many a list has.
Column count_column(std::string header, std::string name) {
  return {std::move(header),
          [name = std::move(name)](const Json& item) {
            const auto it = item.find(name);
            return it != item.end() && it->is_array() ? std::to_string(it->size()) : field(item, name);
          },
          Align::kRight};
}

/// A list of words with commas.
Column words_column(std::string header, std::string name) {
  return {std::move(header), [name = std::move(name)](const Json& item) {
            std::string text;
            const auto it = item.find(name);
            if (it == item.end()) return text;
            for (const Json& word : *it) text += (text.empty() ? "" : ",") + plain(word);
            return text;
          }};
}

/// The first characters of a hash: enough to tell one from another.
Column hash_column(std::string header, std::string name) {
  return {std::move(header), [name = std::move(name)](const Json& item) { return field(item, name).substr(0, 12); }};
}

int act(Client& client, Screen& screen, const char* verb, const Json& request, const std::string& done) {
  const auto answer = client.ask(verb, request);
  if (!answer) return report(screen, answer.error());
  write_answer(screen, *answer, [&](const Json&) { screen.out << done << '\n'; });
  return 0;
}

/// The schema of everything that can be declared.
Result<std::string> all_schemas(Client& client) {
  std::map<std::string, Json> types, configs;
  const auto listed = each_item(client, "types", Json::object(), [&](const std::string& item) {
    types[field(Json::parse(item), "type")];
    return true;
  });
  if (!listed) return listed.error();
  for (auto& [name, schema] : types) {
    configs[name.substr(0, name.find("::"))];
    const auto answer = client.ask("schema", {{"type", name}});
    if (!answer) return answer.error();
    schema = Json::parse(*answer);
  }
  for (auto& [ns, schema] : configs) {
    const auto answer = client.ask("schema", {{"namespace", ns}});
    if (!answer) return answer.error();
    schema = Json::parse(*answer);
  }
  return editor_schema(types, configs).dump();
}

void show_status(Screen& screen, const Json& status) {
  const auto line = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) screen.out << name << std::string(14 - name.size(), ' ') << escape(value) << '\n';
  };
  for (const char* name :
       {"state", "fleet", "coordinator", "version", "started_at", "targets", "resources", "workers"}) {
    line(name, field(status, name));
  }
  if (const auto runs = status.find("runs"); runs != status.end() && runs->is_object()) {
    std::string text;
    for (const auto& [name, value] : runs->items()) {
      if (!value.is_null()) text += (text.empty() ? "" : ", ") + name + " " + plain(value);
    }
    line("runs", text);
  }
  const auto verdict = [](const Json& check) { return std::string(check.value("ok", false) ? "ok" : "failed"); };
  screen.out << '\n';
  write_table(screen, {column("CHECK", "name"), {"STATE", verdict}, column("MESSAGE", "message")},
              status.value("checks", Json::array()));
}

}  // namespace

int targets(Client& client, Screen& screen) {
  return list_all(
      client, screen, "targets", Json::object(),
      {column("NAME", "name"), column("NAMESPACE", "namespace"), column("POOL", "pool"), column("STATE", "state"),
       count_column("RESOURCES", "resources"), column("LAST RUN", "last_run"), column("SYSTEM", "system")},
      "no targets: name some in the coordinator's configuration (`targets:`)");
}

int accept_target(Client& client, Screen& screen, const std::string& name) {
  return act(client, screen, "targets-accept", {{"target", name}}, "accepted: the next run reads " + escape(name));
}

int plugins(Client& client, Screen& screen, const std::string& ns) {
  return list_all(client, screen, "plugins", of_namespace(ns),
                  {column("NAMESPACE", "namespace"), column("PLUGIN", "plugin"), column("VERSION", "version"),
                   count_column("TYPES", "types"), count_column("WORKERS", "workers"), column("STATE", "state"),
                   hash_column("MANIFEST", "manifest"), column("HOST", "host"), column("REASON", "reason")},
                  "no plugins yet: start a worker with `muster worker PLUGIN`");
}

int workers(Client& client, Screen& screen) {
  return list_all(client, screen, "workers", Json::object(),
                  {id_column("ID", "id"),
                   column("NAMESPACE", "namespace"),
                   column("POOL", "pool"),
                   column("PLUGIN", "plugin"),
                   column("VERSION", "version"),
                   column("HOST", "host"),
                   column("PID", "pid", Align::kRight),
                   column("SLOTS", "slots", Align::kRight),
                   column("FREE", "free", Align::kRight),
                   count_column("JOBS", "jobs"),
                   {"STATE",
                    [](const Json& worker) {
                      return field(worker, "state") +
                             (worker.value("healthy", true) ? "" : " (ill: " + field(worker, "health") + ")");
                    }},
                   column("SINCE", "since")},
                  "no workers: start one with `muster worker PLUGIN`");
}

int pools(Client& client, Screen& screen) {
  return list_all(
      client, screen, "pools", Json::object(),
      {column("NAMESPACE", "namespace"), column("POOL", "pool"), column("WORKERS", "workers", Align::kRight),
       column("SLOTS", "slots", Align::kRight), column("BUSY", "busy", Align::kRight),
       column("QUEUED", "queued", Align::kRight), column("WAIT MS", "wait_ms", Align::kRight)},
      "no workers, and no jobs: start one with `muster worker PLUGIN`");
}

int drain_worker(Client& client, Screen& screen, const std::string& id) {
  return act(client, screen, "workers-drain", {{"id", id}}, escape(id) + " drains: it ends its jobs and takes no more");
}

int types(Client& client, Screen& screen, const std::string& ns) {
  return list_all(client, screen, "types", of_namespace(ns),
                  {column("TYPE", "type"), column("PLUGIN", "plugin"), column("PARENT", "parent"),
                   words_column("OPERATIONS", "operations"), column("DESCRIPTION", "description")},
                  "no types: no plugin has announced itself");
}

int schema(Client& client, Screen& screen, const std::string& type) {
  const auto answer = type.empty() ? all_schemas(client) : client.ask("schema", {{"type", type}});
  if (!answer) return report(screen, answer.error());
  write_answer(screen, *answer, [&](const Json& object) { screen.out << portable_json(object.dump(2)) << '\n'; });
  return 0;
}

int status(Client& client, Screen& screen) {
  const auto answer = client.ask("status", Json::object());
  if (!answer) return report(screen, answer.error());
  write_answer(screen, *answer, [&](const Json& object) { show_status(screen, object); });
  return Json::parse(*answer).value("state", "") == "ok" ? 0 : 1;
}

}  // namespace muster::cli
