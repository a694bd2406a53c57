#include <algorithm>
#include <chrono>
#include <ostream>
#include <thread>

#include <spdlog/fmt/fmt.h>

#include "coordinator/cli/verbs.h"

namespace muster::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kPage = 1000;  // items at most that one request asks for
constexpr Millis kPoll{200};
constexpr Millis kAwayAtMost{30'000};

bool ended(const Json& run) {
  const std::string state = field(run, "state");
  return state == "complete" || state == "partial" || state == "failed";
}

/// Sum of a count over a run's scans.
std::uint64_t sum(const Json& run, const char* name) {
  std::uint64_t total = 0;
  for (const Json& scan : run.value("scans", Json::array())) total += scan.value(name, std::uint64_t{0});
  return total;
}

Column sum_column(std::string header, const char* name) {
  return {std::move(header), [name](const Json& run) { return std::to_string(sum(run, name)); }, Align::kRight};
}

std::string duration(const Json& run) {
  const auto ms = run.find("duration_ms");
  if (ms == run.end() || !ms->is_number_unsigned()) return {};
  if (*ms < 1000) return plain(*ms) + " ms";
  return fmt::format("{:.1f} s", ms->get<double>() / 1000);
}

std::string progress_line(const Json& run) {
  const Json scans = run.value("scans", Json::array());
  std::size_t complete = 0;
  for (const Json& scan : scans) complete += scan.value("complete", false) ? 1 : 0;
  const std::string waiting = field(run, "waiting");
  return fmt::format("run {} {}: {} of {} scans, {} listed, {} read{}", escape(field(run, "run")),
                     escape(field(run, "state")), complete, scans.size(), sum(run, "listed"), sum(run, "read"),
                     waiting.empty() ? "" : "; " + escape(waiting));
}

void show_run(Screen& screen, const Json& run) {
  const std::string trigger = field(run, "trigger");
  screen.out << "run " << escape(field(run, "run")) << ": " << escape(field(run, "state"));
  if (const std::string took = duration(run); !took.empty()) screen.out << " after " << took;
  if (!trigger.empty()) screen.out << ", trigger " << escape(trigger);
  if (const std::string waiting = field(run, "waiting"); !waiting.empty()) screen.out << "; " << escape(waiting);
  screen.out << '\n';
  std::vector<Column> columns{column("TARGET", "target"), column("TYPE", "type")};
  for (const std::string name :
       {"listed", "read", "filtered", "new", "changed", "renamed", "unchanged", "missing", "errors"}) {
    if (name == "renamed" && sum(run, "renamed") == 0) continue;  // as in most runs: the table is wide
    std::string header(name);
    for (char& c : header) c = static_cast<char>(c - 'a' + 'A');
    columns.push_back(column(header, name, Align::kRight));
  }
  columns.push_back({"COMPLETE", [](const Json& scan) { return scan.value("complete", false) ? "yes" : "no"; }});
  write_table(screen, columns, run.value("scans", Json::array()));
  const Json problems = run.value("problems", Json::array());
  if (problems.empty()) return;
  screen.out << "\nproblems:\n";
  write_table(screen,
              {column("TARGET", "target"), column("TYPE", "type"), column("CODE", "code"), column("PLUGIN", "plugin"),
               column("JOB", "job"), column("MESSAGE", "message")},
              problems);
  if (const auto more = run.value("more_problems", std::uint64_t{0}); more > 0) {
    screen.out << "and " << more << " more, which are in the log only\n";
  }
}

}  // namespace

int run_status(const Json& run) {
  return field(run, "state") == "complete" ? 0 : 1;
}

Result<std::optional<std::string>> await_run(Client& client, Screen& screen, const std::string& id,
                                             const Interrupted& interrupted) {
  Progress progress(screen);
  std::string awaited = id;
  auto last_answer = steady_clock::now();
  while (!interrupted()) {
    auto answer = client.ask("run", {{"run", awaited}});
    if (answer) {
      last_answer = steady_clock::now();
      const Json run = Json::parse(*answer);
      if (auto other = field(run, "merged_into"); !other.empty()) {  // a coordinator that came back made one of several
        awaited = std::move(other);
        continue;
      }
      if (ended(run)) {
        auto whole = rest_of(client, "run", {{"run", awaited}}, "scans", std::move(*answer));
        if (!whole) return whole.error();
        return std::optional(std::move(*whole));
      }
      progress.show(progress_line(run));
    } else if (interrupted()) {
      break;
    } else if (!may_pass(answer.error()) || steady_clock::now() - last_answer > kAwayAtMost) {
      return answer.error();
    } else {
      progress.show("run " + escape(awaited) + ": waiting for the coordinator to come back");
    }
    std::this_thread::sleep_for(kPoll);
  }
  return std::optional<std::string>();
}

Result<std::optional<std::vector<std::string>>> await_runs(Client& client, Screen& screen, const std::string& id,
                                                           const Interrupted& interrupted) {
  std::vector<std::string> ids{id}, reports;
  for (std::size_t i = 0; i < ids.size(); ++i) {  // grows
    auto report = await_run(client, screen, ids[i], interrupted);
    if (!report) return report.error();
    if (!*report) return std::optional<std::vector<std::string>>();
    for (const Json& next : Json::parse(**report).value("followed_by", Json::array())) ids.push_back(next);
    reports.push_back(std::move(**report));
  }
  return std::optional(std::move(reports));
}

int discover(Client& client, Screen& screen, const DiscoverOptions& options, const Interrupted& interrupted) {
  Json request{{"targets", options.targets}, {"types", options.types}, {"trigger", "user"}};
  if (!options.stacks.empty()) request["stacks"] = options.stacks;
  const auto started = client.ask("discover", std::move(request));
  if (!started) return report(screen, started.error());
  const std::string id = field(Json::parse(*started), "run");
  if (!options.wait) {
    write_answer(screen, *started, [&](const Json& answer) {
      const bool merged = answer.value("merged", false);
      screen.out << "run " << escape(id) << (merged ? " follows the one that runs now" : " started") << ": muster run "
                 << escape(id) << '\n';
    });
    return 0;
  }
  const auto finished = await_runs(client, screen, id, interrupted);
  if (!finished) return report(screen, finished.error());
  if (!finished->has_value()) {
    note(screen, "stopped waiting; the run goes on: muster run " + escape(id));
    return 1;
  }
  const auto& reports = **finished;
  write_answer(screen, reports.front(), [&](const Json& run) { show_run(screen, run); });
  int status = 0;
  for (const auto& report : reports) {
    const Json run = Json::parse(report);
    status = std::max(status, run_status(run));
    if (&report != &reports.front())
      note(screen, "what was not found is listed in: muster run " + escape(field(run, "run")));
  }
  return status;
}

int runs(Client& client, Screen& screen, std::uint64_t limit) {
  ListWriter list(screen,
                  {id_column("RUN", "run"),
                   column("STATE", "state"),
                   column("TRIGGER", "trigger"),
                   column("STARTED", "started_at"),
                   {"TOOK", duration, Align::kRight},
                   sum_column("LISTED", "listed"),
                   sum_column("NEW", "new"),
                   sum_column("CHANGED", "changed"),
                   sum_column("MISSING", "missing"),
                   sum_column("ERRORS", "errors")},
                  "no runs yet: `muster discover` starts one");
  std::uint64_t left = limit;
  std::optional<Error> failed;
  const auto done = each_item(client, "runs", {{"limit", std::min(limit, kPage)}}, [&](const std::string& part) {
    const auto whole = rest_of(client, "run", {{"run", field(Json::parse(part), "run")}}, "scans", part);
    if (!whole) {
      failed = whole.error();
      return false;
    }
    list.add(*whole);
    return --left > 0;
  });
  if (!done || failed) return report(screen, failed ? *failed : done.error());
  return list.finish() ? 0 : 1;
}

int run(Client& client, Screen& screen, const std::string& id) {
  auto answer = client.ask("run", {{"run", id}});
  if (answer) answer = rest_of(client, "run", {{"run", id}}, "scans", std::move(*answer));
  if (!answer) return report(screen, answer.error());
  write_answer(screen, *answer, [&](const Json& object) { show_run(screen, object); });
  return 0;
}

}  // namespace muster::cli
