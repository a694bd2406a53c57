#include "coordinator/cli/apply.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>
#include <set>
#include <thread>
#include <tuple>

#include <spdlog/fmt/fmt.h>

#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/saved_plan.h"
#include "coordinator/declaration_reader.h"
#include "coordinator/target_forms.h"
#include "schema/utf8.h"

namespace muster::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kPartBytes = 400 * 1024;  // of declarations in one request
constexpr Millis kPoll{150};
constexpr Millis kPlanAgain{300};
constexpr Millis kAwayAtMost{30'000};
constexpr std::size_t kMaxValue = 100;  // bytes of a value that a plan shows

constexpr std::array<std::string_view, 6> kActions{"create", "update", "replace", "delete", "adopt", "unchanged"};

void add_stack(Wanted& wanted, Declaration stack) {
  wanted.names.insert(stack.stack);
  const auto close = [&](std::string& resources) {
    wanted.stacks.push_back("{\"stack\":\"" + stack.stack + "\",\"resources\":[" + resources + "]}");
    resources.clear();
  };
  std::string resources;
  for (auto& each : stack.resources) {
    const auto resource = std::move(each);  // one by one: not all of many are held twice
    if (resources.size() > kPartBytes) close(resources);
    resources += (resources.empty() ? "" : ",") + declared_request(resource);
  }
  close(resources);
}

/// nullopt: mistakes were reported.
std::optional<std::vector<DeclarationFile>> load_files(Screen& screen, const ApplyOptions& options) {
  std::vector<DeclarationFile> files;
  std::vector<ConfigMistake> mistakes;
  for (const auto& file : options.files) {
    auto text = read_input(file);
    if (!text) mistakes.push_back({file, 0, 0, text.error().message});
    files.push_back({input_name(file), text ? std::move(*text) : std::string()});
  }
  if (mistakes.empty()) return files;
  static_cast<void>(report(screen, mistakes));
  return std::nullopt;
}

std::optional<Wanted> read_files(Screen& screen, const ApplyOptions& options,
                                 const std::vector<DeclarationFile>& files) {
  auto read = read_declarations(files, options.variables);
  if (!read.mistakes.empty()) {
    static_cast<void>(report(screen, read.mistakes));
    return std::nullopt;
  }
  Wanted wanted;
  for (auto& stack : read.stacks) add_stack(wanted, std::move(stack));
  for (const auto& target : read.targets) wanted.targets.push_back(to_json(target));
  wanted.mode = options.mode;
  wanted.only = options.only;
  wanted.exclude = options.exclude;
  return wanted;
}

/// Says which resource of a part is too large for a message.
Error too_large(const JsonText& part, Error error) {
  const Json stack = Json::parse(part);
  const auto& all = stack.at("resources");
  if (all.empty()) return error;
  const auto size = [](const Json& resource) { return resource.dump().size(); };
  const auto& largest = *std::ranges::max_element(all, {}, size);
  error.message = fmt::format("{}/{} declares too much for one message: {}; raise max_payload of nats-server",
                              field(stack, "stack"), field(largest, "name"), error.message);
  return error;
}

/// Sends what is wanted, and gets the plan of it with all its steps.
Result<Json> ask_plan(Client& client, Screen& screen, const Wanted& wanted, bool keep) {
  Progress progress(screen);
  std::string draft;
  constexpr std::string_view kStacks = "stacks";
  const auto send = [&](std::string_view what, const JsonText& part) -> Result<void> {
    const auto to = draft.empty() ? std::string() : ",\"draft\":" + Json(draft).dump();
    const auto answer = client.ask_text("declare", fmt::format(R"({{"api":1,"{}":[{}]{}}})", what, part, to));
    if (!answer && answer.error().code == Errc::kTooLarge && what == kStacks) return too_large(part, answer.error());
    if (!answer) return answer.error();
    const Json said = Json::parse(*answer);
    draft = field(said, "draft");
    if (wanted.stacks.size() > 3) progress.show("sent " + escape(field(said, "resources")) + " resources");
    return {};
  };
  for (const auto& stack : wanted.stacks) {
    if (auto sent = send(kStacks, stack); !sent) return sent.error();
  }
  for (const auto& target : wanted.targets) {
    if (auto sent = send("targets", target.dump()); !sent) return sent.error();
  }
  Json plan;
  std::string cursor;
  Json request{{"draft", draft}, {"mode", wanted.mode}, {"only", wanted.only}, {"exclude", wanted.exclude}};
  if (screen.format == Format::kTable) request["changes"] = true;
  if (!keep) request["keep"] = false;
  do {
    progress.show("planning");
    auto answer = client.ask("plan", request);
    if (!answer) return answer.error();
    cursor = next_page(*answer);
    if (!cursor.empty()) {
      for (const auto* said : {"mode", "only", "exclude"}) request.erase(said);
      request["cursor"] = cursor;
      client.ask_ahead("plan", request);
    }
    Json part = Json::parse(*answer);
    if (plan.is_null()) {
      plan = std::move(part);
    } else {
      for (auto& step : part["steps"]) plan["steps"].push_back(std::move(step));
    }
  } while (!cursor.empty());
  return plan;
}

/// Has the coordinator read again what the stacks have. What could not be read is told, and nothing is planned.
Result<void> refresh(Client& client, Screen& screen, const Wanted& wanted, const Interrupted& interrupted) {
  for (const auto& stack : wanted.names) {
    const auto started = client.ask("discover", {{"stacks", Json::array({stack})}});
    if (!started && started.error().code == Errc::kNotFound) continue;  // it has nothing yet
    if (!started) return started.error();
    const auto ended = await_runs(client, screen, field(Json::parse(*started), "run"), interrupted);
    if (!ended) return ended.error();
    if (!*ended) return Error{Errc::kCancelled, "stopped before anything was planned", {}, 0};
    for (const auto& report : **ended) {
      for (const Json& problem : Json::parse(report).value("problems", Json::array())) {
        note(screen, "not read again: " + escape(field(problem, "target") + " " + field(problem, "type") + ": " +
                                                 field(problem, "code") + ": " + field(problem, "message")));
      }
    }
    // What the listings that follow could not see stays in the plan as not checked.
    if (!Json::parse((*ended)->front()).value("problems", Json::array()).empty()) {
      return Error{Errc::kServiceUnavailable,
                   "not all could be read again; without --refresh the plan stands on what is known",
                   {},
                   0};
    }
  }
  return {};
}

std::string short_value(const Json& value) {
  auto text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxValue) text = std::string(utf8_prefix(text, kMaxValue)) + "...";
  return escape(text);
}

std::string value_of(const Json& change) {
  if (!change.at("value").is_null()) return short_value(change.at("value"));
  if (change.value("hidden", false)) return "(not shown)";
  const auto reference = field(change, "reference");
  return reference.empty() ? "(known when it is done)" : escape(reference);
}

std::string_view sign_of(const std::string& action) {
  if (action == "create") return "+";
  if (action == "update") return "~";
  if (action == "replace") return "-/+";
  if (action == "delete") return "-";
  if (action == "adopt") return "<-";
  return " ";
}

std::string_view colour_of_action(const std::string& action) {
  if (action == "create") return "\x1b[32m";
  if (action == "delete") return "\x1b[31m";
  if (action == "unchanged") return "";
  return "\x1b[33m";
}

std::string summary_line(const Json& summary) {
  std::string line;
  for (const auto action : kActions) {
    const auto count = summary.value(std::string(action), std::uint64_t{0});
    if (count == 0) continue;
    line += (line.empty() ? "" : ", ") + std::to_string(count) + " " +
            (action == "unchanged" ? "unchanged" : "to " + std::string(action));
  }
  return line.empty() ? "nothing" : line;
}

void show_action(const Screen& screen, std::ostream& out, const std::string& action) {
  const auto colour = screen.colour ? colour_of_action(action) : std::string_view();
  out << colour << sign_of(action) << " " << escape(action) << (colour.empty() ? "" : "\x1b[0m") << " ";
}

void show_plan(Screen& screen, std::ostream& out, const Json& plan) {
  for (const Json& target : plan.value("targets", Json::array())) {
    show_action(screen, out, field(target, "action"));
    out << "target " << escape(field(target, "target")) << "  " << escape(field(target, "namespace"));
    if (const auto reason = field(target, "reason"); !reason.empty()) out << "  (" << escape(reason) << ")";
    out << '\n';
  }
  for (const Json& step : plan.at("steps")) {
    const auto action = field(step, "action");
    if (action == "unchanged" && field(step, "reason").empty()) continue;
    show_action(screen, out, action);
    out << escape(place_of(step)) << "  " << escape(field(step, "type")) << " on " << escape(field(step, "target"));
    if (const auto id = field(step, "native_id"); !id.empty()) out << "  " << escape(id);
    if (const auto reason = field(step, "reason"); !reason.empty()) out << "  (" << escape(reason) << ")";
    out << '\n';
    for (const Json& change : step.value("patch", Json::array())) {
      out << "      " << escape(field(change, "op")) << " " << escape(field(change, "path"));
      if (change.contains("value")) out << " = " << value_of(change);
      if (change.contains("was")) out << " (was " << short_value(change.at("was")) << ")";
      out << '\n';
    }
  }
  const auto targets = plan.value("targets", Json::array()).size();
  const auto steps = summary_line(plan.at("summary"));
  out << "plan: ";
  if (targets > 0) out << targets << (targets == 1 ? " target" : " targets") << (steps == "nothing" ? "\n" : ", ");
  if (targets == 0 || steps != "nothing") out << steps << '\n';
}

Json shown_plan(Json plan) {
  Json steps = std::move(plan.at("steps"));
  for (auto& step : steps) step.erase("hash");
  Json targets = plan.value("targets", Json::array());
  for (auto& target : targets) target.erase("hash");
  return {{"summary", plan.at("summary")}, {"targets", std::move(targets)}, {"steps", std::move(steps)}};
}

bool ended(const Json& command) {
  return !field(command, "finished_at").empty();
}

std::string progress_line(const Json& command) {
  const Json progress = command.value("progress", Json::object());
  const auto count = [&](const char* name) { return progress.value(name, std::uint64_t{0}); };
  std::string line = fmt::format("command {} {}", escape(field(command, "command")), escape(field(command, "state")));
  if (progress.empty()) return line;
  line += fmt::format(": {} done, {} running, {} waiting", count("done"), count("running"), count("pending"));
  if (const auto failed = count("failed") + count("blocked"); failed > 0)
    line += fmt::format(", {} failed or blocked", failed);
  if (const auto waiting = field(progress, "waiting"); !waiting.empty()) line += "; " + escape(waiting);
  return line;
}

Result<Json> brief_command(Client& client, const std::string& id) {
  const auto answer = client.ask("command", {{"command", id}, {"brief", true}});
  if (!answer) return answer.error();
  return Json::parse(*answer);
}

/// The whole of a command, however many parts it comes in.
Result<Json> whole_command(Client& client, const std::string& id) {
  Json whole;
  std::string cursor;
  do {
    Json request{{"command", id}};
    if (!cursor.empty()) request["cursor"] = cursor;
    const auto answer = client.ask("command", std::move(request));
    if (!answer) return answer.error();
    Json part = Json::parse(*answer);
    cursor = field(part, "next");
    part.erase("next");
    if (whole.is_null()) {
      whole = std::move(part);
      continue;
    }
    for (auto& step : part["plan"]["steps"]) whole["plan"]["steps"].push_back(std::move(step));
    for (auto& result : part["results"]) whole["results"].push_back(std::move(result));
  } while (!cursor.empty());
  return whole;
}

void show_results(Screen& screen, const Json& command) {
  Json odd = Json::array();
  std::map<std::string, std::size_t> done;
  for (const Json& result : command.at("results")) {
    if (field(result, "state") == "done") {
      ++done[field(result, "action")];
    } else {
      odd.push_back(result);
    }
  }
  if (!odd.empty()) {
    write_table(screen,
                {column("NAME", "name"), column("ACTION", "action"), column("STATE", "state"), column("CODE", "code"),
                 column("MESSAGE", "message")},
                odd);
  }
  screen.out << "command " << escape(field(command, "command")) << ": " << escape(field(command, "state"));
  for (const auto& [action, count] : done) screen.out << ", " << count << " " << escape(action) << " done";
  if (!odd.empty()) screen.out << ", " << odd.size() << " not done";
  screen.out << '\n';
}

/// Waits for the end of a command; none: the user does not want to wait any longer.
Result<std::optional<Json>> await_command(Client& client, Screen& screen, const std::string& id,
                                          const Interrupted& interrupted) {
  Progress progress(screen);
  auto last_answer = steady_clock::now();
  while (!interrupted()) {
    auto command = brief_command(client, id);
    if (command && ended(*command)) {
      command = whole_command(client, id);  // of which the coordinator may be away meanwhile
      if (command) return std::optional(std::move(*command));
    }
    if (command) {
      last_answer = steady_clock::now();
      progress.show(progress_line(*command));
    } else if (interrupted()) {
      break;
    } else if (!may_pass(command.error()) || steady_clock::now() - last_answer > kAwayAtMost) {
      return command.error();
    } else {
      progress.show("command " + escape(id) + ": waiting for the coordinator to come back");
    }
    std::this_thread::sleep_for(kPoll);
  }
  return std::optional<Json>();
}

/// What other commands do, of a plan that would change no resource: it may be otherwise when they have ended. Empty:
/// nothing.
std::string changes_beside(const Json& plan) {
  std::string said;
  for (const Json& other : plan.value("behind", Json::array())) {
    said += (said.empty() ? "command " : ", command ") + escape(field(other, "command")) + " is changing " +
            escape(plain(other.at("changes").at(0)));
    if (const auto more = other.at("changes_total").get<std::size_t>() - 1; more > 0)
      said += " and " + std::to_string(more) + " more";
  }
  return said;
}

/// A plan; of a fleet that has just started, once its workers are there: until then nobody serves any type.
Result<Json> plan_with_workers(Client& client, Screen& screen, const Wanted& wanted, bool keep,
                               const Interrupted& interrupted) {
  for (bool told = false;; told = true) {
    auto plan = ask_plan(client, screen, wanted, keep);
    const bool early = plan && !plan->at("mistakes").empty() && plan->value("awaits_workers", false);
    if (!early || interrupted()) return plan;
    if (!told) note(screen, "the fleet has just started: waiting for its workers");
    std::this_thread::sleep_for(kPlanAgain);
  }
}

/// A plan; where it would change no resource, once others that do have ended.
Result<Json> settled_plan(Client& client, Screen& screen, const Wanted& wanted, const ApplyOptions& options,
                          const Interrupted& interrupted) {
  const bool looks_only = options.plan_only || !options.plan_out.empty();
  for (;;) {
    auto plan = plan_with_workers(client, screen, wanted, !looks_only, interrupted);
    const auto others = plan ? changes_beside(*plan) : std::string();
    if (others.empty() || looks_only || options.refuse_busy) return plan;
    note(screen, "no resource to change as of now, and " + others + ": waiting for its end");
    for (const Json& other : plan->at("behind")) {
      const auto ended = await_command(client, screen, field(other, "command"), interrupted);
      if (!ended) return ended.error();
      if (!*ended) return plan;
    }
  }
}

/// Mistakes that only show beside the inventory, each with its place in the files.
int report_mistakes(Screen& screen, const Json& plan, const std::vector<DeclarationFile>& files,
                    const std::map<std::string, std::string>& variables) {
  DeclarationPlaces places;
  static_cast<void>(read_declarations(files, variables, &places));
  std::vector<ConfigMistake> mistakes;
  for (const Json& each : plan.at("mistakes")) {
    const auto resource = field(each, "resource");
    const auto place =
        places.find(field(each, "stack"), resource, field(each, "pointer")).value_or(DeclarationPlaces::Place{});
    mistakes.push_back(
        {place.file, place.line, place.column, (resource.empty() ? "" : resource + ": ") + field(each, "message")});
  }
  std::ranges::stable_sort(mistakes, {},
                           [](const auto& each) { return std::tuple(each.file, each.line, each.column); });
  const auto total = plan.value("mistakes_total", mistakes.size());
  static_cast<void>(report(screen, mistakes));
  if (total > mistakes.size()) screen.err << "muster: and " << total - mistakes.size() << " more" << std::endl;
  return 2;
}

}  // namespace

std::optional<int> declined(Screen& screen, const Ask& ask, const std::string& question) {
  screen.out << std::flush;
  const auto agreed = ask(question + " Only `yes` is taken for it: ");
  if (!agreed) {
    screen.err << "muster: there is no terminal to ask on: give --yes to go ahead, or --plan to look only" << std::endl;
    return 2;
  }
  if (*agreed) return std::nullopt;
  note(screen, "nothing was done");
  return 1;
}

int apply(Client& client, Screen& screen, const ApplyOptions& options, const Ask& ask, const Interrupted& interrupted) {
  const auto files = load_files(screen, options);
  if (!files) return 2;
  auto wanted = options.plan_in.empty() ? read_files(screen, options, *files) : read_plan(screen, options.plan_in);
  if (!wanted) return 2;
  const bool destroys = wanted->mode == "destroy";
  if (options.refresh) {
    if (const auto done = refresh(client, screen, *wanted, interrupted); !done) return report(screen, done.error());
  }
  auto plan = settled_plan(client, screen, *wanted, options, interrupted);
  if (!plan) return report(screen, plan.error());
  if (!plan->at("mistakes").empty()) return report_mistakes(screen, *plan, *files, options.variables);
  if (!wanted->basis.is_null()) {
    if (const auto where = moved(wanted->basis, *plan); !where.empty()) {
      screen.err << "muster: the world has moved since the plan was saved; nothing was done:\n";
      for (const auto& each : where) screen.err << "  " << escape(each) << '\n';
      screen.err << std::flush;
      return 1;
    }
  }
  for (const Json& unchecked : plan->at("unchecked")) {
    note(screen, "not checked yet: " + escape(field(unchecked, "resource") + field(unchecked, "pointer")) + ": " +
                     escape(field(unchecked, "message")));
  }
  const bool machine = screen.format != Format::kTable;
  if (!machine || !(options.plan_only || options.yes)) show_plan(screen, machine ? screen.err : screen.out, *plan);
  if (!options.plan_out.empty() && !save_plan(screen, options.plan_out, *wanted, *plan)) return 1;
  const auto others = changes_beside(*plan);
  if (!others.empty()) note(screen, others + ": what is to do may be otherwise then");
  if (options.plan_only || !options.plan_out.empty()) {
    if (machine) write_object(screen, shown_plan(std::move(*plan)), [](const Json&) {});
    return 0;
  }
  if (!others.empty()) return 1;
  if (plan->value("nothing", false)) {
    if (machine) {
      const Json answer{
          {"command", nullptr}, {"state", "complete"}, {"plan", shown_plan(*plan)}, {"results", Json::array()}};
      write_object(screen, answer, [](const Json&) {});
    } else {
      const auto* const known = plan->at("unchecked").empty() ? "\n" : ", as far as is known\n";
      screen.out << (destroys ? "nothing to destroy\n" : "nothing to do: all is as declared" + std::string(known));
    }
    return 0;
  }
  const bool changes =
      !plan->value("targets", Json::array()).empty() ||
      std::ranges::any_of(plan->at("steps"), [](const Json& step) { return field(step, "action") != "unchanged"; });
  if (!options.yes && changes) {
    if (const auto status = declined(screen, ask, destroys ? "Destroy this?" : "Do this?")) return *status;
  }
  Progress progress(screen);
  progress.show("waiting for the coordinator to begin");
  const auto started =
      client.ask("apply", {{"draft", field(*plan, "draft")}, {"if_busy", options.refuse_busy ? "refuse" : "wait"}});
  progress.clear();
  if (!started) {  // a coordinator that has gone may have begun it before
    if (exit_status(started.error()) == 3 || started.error().code == Errc::kCancelled)
      note(screen, "`muster commands` shows whether it was begun all the same");
    return report(screen, started.error());
  }
  const auto id = field(Json::parse(*started), "command");
  auto finished = await_command(client, screen, id, interrupted);
  if (!finished) {
    note(screen, "the command goes on as far as is known: muster command " + escape(id));
    return report(screen, finished.error());
  }
  if (!finished->has_value()) {
    note(screen, escape("stopped watching; the command goes on: muster command " + id + ", muster cancel " + id));
    return 1;
  }
  Json& whole = **finished;
  if (machine) {
    const Json answer{
        {"command", id}, {"state", whole.at("state")}, {"plan", shown_plan(*plan)}, {"results", whole.at("results")}};
    write_object(screen, answer, [](const Json&) {});
  } else {
    show_results(screen, whole);
  }
  return field(whole, "state") == "complete" ? 0 : 1;
}

int commands(Client& client, Screen& screen, std::uint64_t limit) {
  ListWriter list(screen,
                  {id_column("COMMAND", "command"),
                   column("KIND", "kind"),
                   column("STATE", "state"),
                   {"STACKS",
                    [](const Json& item) {
                      std::string all;
                      for (const Json& stack : item.value("stacks", Json::array()))
                        all += (all.empty() ? "" : ", ") + plain(stack);
                      return all;
                    }},
                   column("CREATED", "created_at"),
                   column("FINISHED", "finished_at")},
                  "no commands yet: `muster apply FILE` gives one");
  std::uint64_t left = limit;
  const auto done =
      each_item(client, "commands", {{"limit", std::min<std::uint64_t>(limit, 1000)}}, [&](const std::string& item) {
        list.add(item);
        return --left > 0;
      });
  if (!done) return report(screen, done.error());
  return list.finish() ? 0 : 1;
}

int command(Client& client, Screen& screen, const std::string& id) {
  const auto whole = whole_command(client, id);
  if (!whole) return report(screen, whole.error());
  write_object(screen, *whole, [&](const Json& object) {
    screen.out << progress_line(object) << '\n';
    show_plan(screen, screen.out, object.at("plan"));
    show_results(screen, object);
  });
  return 0;
}

int cancel(Client& client, Screen& screen, const std::string& id, bool force) {
  const auto answer = client.ask("cancel", {{"command", id}, {"force", force}});
  if (!answer) return report(screen, answer.error());
  write_answer(screen, *answer, [&](const Json&) {
    screen.out << "command " << id
               << (force ? ": what runs is told to stop\n" : ": what runs ends, nothing more is begun\n");
  });
  return 0;
}

}  // namespace muster::cli
