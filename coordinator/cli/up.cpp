#include "coordinator/cli/up.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include <spdlog/logger.h>

#include "coordinator/cli/client.h"
#include "coordinator/cli/first_run.h"
#include "coordinator/cli/nats_server.h"
#include "coordinator/cli/patient_screen.h"
#include "coordinator/cli/plugin_reports.h"
#include "coordinator/cli/replace_file.h"
#include "coordinator/cli/settings.h"
#include "coordinator/cli/supervisor.h"
#include "coordinator/cli/worker_command.h"
#include "coordinator/cli/worker_folder.h"
#include "coordinator/file_lock.h"
#include "worker_sdk/bus/fleet_file.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr Millis kServerStart{10'000};
constexpr Millis kOtherFleet{1000};  // to answer, if there is one
constexpr int kStarts = 3;           // of a coordinator that never answers, before we give up

int refuse(Screen& screen, const std::string& message) {
  screen.err << "muster: " << escape(message) << std::endl;
  return 1;
}

/// Removes the file that says where the fleet is when the fleet is gone.
class UrlFile {
 public:
  UrlFile() = default;
  UrlFile(const UrlFile&) = delete;
  UrlFile& operator=(const UrlFile&) = delete;
  ~UrlFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  Result<void> write(std::string path, const std::string& place) {
    if (auto written = replace_file(path, place, kPrivate); !written) return written;
    path_ = std::move(path);
    return {};
  }

 private:
  std::string path_;
};

/// What children write, each line with its writer's name.
Supervisor::Log make_log(Screen& screen) {
  return [&screen](const std::string& child, std::string_view line) {
    const bool chatter = line.find("[INF]") != std::string_view::npos ||
                         line.find("[WRN] Plaintext passwords") != std::string_view::npos;
    if (child == "nats-server" && chatter && screen.verbosity != Verbosity::kVerbose) return;
    screen.err << (screen.progress ? "\r\x1b[K" : "") << log_line(child, line) << std::endl;
  };
}

Command coordinator_command(const UpOptions& options, const Config& config, Verbosity verbosity) {
  Command command{"coordinator", {fs::read_symlink("/proc/self/exe"), "coordinator"}, options.env};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) command.argv.insert(command.argv.end(), {flag, value});
  };
  add("--config", options.flags.config);
  add("--data-dir", config.data_dir);
  add("--prefix", options.flags.prefix);
  if (verbosity == Verbosity::kVerbose) command.argv.emplace_back("-v");
  if (verbosity == Verbosity::kQuiet) command.argv.emplace_back("-q");
  command.env["MUSTER_NATS_URL"] = config.nats.url;
  return command;
}

/// Whether the bus answers, within `patience`; `supervisor` goes on meanwhile.
Result<void> await_bus(Supervisor& supervisor, const Config& config, Millis patience) {
  const TimePoint deadline = std::chrono::steady_clock::now() + patience;
  NatsOptions nats = config.nats;
  nats.name = "muster up";
  nats.connect_timeout = Millis{1000};
  while (true) {
    supervisor.turn(Millis{20});
    const auto bus = NatsBus::connect(nats, std::make_shared<spdlog::logger>("up"));
    if (bus) return {};
    const bool hopeless = bus.error().code == Errc::kInvalidRequest;  // a file of ours: waiting does not mend it
    if (hopeless || supervisor.stop_asked() || std::chrono::steady_clock::now() > deadline) return bus.error();
  }
}

/// The fleet that answers on the prefix already, as messages name it: its inventory would be taken for that of this
/// one, and the workers of this one would be its workers.
std::optional<std::string> fleet_there(const Config& config) {
  NatsOptions nats = config.nats;
  nats.name = "muster up";
  const auto client = NatsClient::connect(nats, config.prefix, kOtherFleet, std::make_shared<spdlog::logger>("up"));
  if (!client) return std::nullopt;
  const auto answer = (*client)->ask("status", Json::object());
  if (!answer) return std::nullopt;
  return field(Json::parse(*answer, nullptr, false), "fleet");
}

void say_what_runs(Screen& screen, const Config& config) {
  note(screen, "data in " + config.data_dir);
  note(screen, "watch the events with any NATS client:\n  nats sub -s \"$(head -n1 '" + config.data_dir + "/" +
                   std::string(kFleetFile) + "')\" '" + config.prefix + ".event.>'");
}

void say_what_to_try(Screen& screen, const UpOptions& options) {
  const auto& config = options.config;
  std::string common;
  if (config.data_dir != default_data_dir(options.env, geteuid() == 0))
    common += " --data-dir '" + config.data_dir + "'";
  std::string text = "\nIt runs until Ctrl-C. Worth trying in another terminal:\n";
  for (const char* verb : {"resources --limit 20", "discover --wait", "events --follow", "workers", "status"}) {
    text += std::string("  muster ") + verb + common + "\n";
  }
  note(screen, text);
}

/// Starts everything below the supervisor. Returns the exit status where that fails.
std::optional<int> start_all(const UpOptions& options, Config& config, PluginHost& host, Supervisor& supervisor,
                             UrlFile& url_file, Screen& screen) {
  const bool own_server = config.nats.url.empty();
  if (own_server) {
    auto server = prepare_nats_server(config.data_dir, options.env);
    if (!server) return refuse(screen, server.error().message);
    config.nats.url = server->url;
    supervisor.keep_running(std::move(server->command), Stage::kServer);
  }
  if (auto ready = await_bus(supervisor, config, own_server ? kServerStart : options.timeout); !ready) {
    if (supervisor.stop_asked()) return 0;
    const auto why = own_server ? "nats-server does not start: " + ready.error().message : ready.error().message;
    const int refused = refuse(screen, why);
    return ready.error().code == Errc::kInvalidRequest ? refused : own_server ? 1 : 3;
  }
  if (const auto other = own_server ? std::nullopt : fleet_there(config)) {
    return refuse(screen, "fleet " + *other + " is on prefix '" + config.prefix +
                              "' already: stop its coordinator, or give this one another --prefix");
  }
  if (auto written = url_file.write(fs::path(config.data_dir) / kFleetFile, fleet_place(config)); !written) {
    return refuse(screen, written.error().message);
  }
  supervisor.keep_running(coordinator_command(options, config, screen.verbosity), Stage::kCoordinator);
  host.set_bus(config.nats.url);
  host.turn(supervisor, steady_clock::now());
  return std::nullopt;
}

int supervise(const UpOptions& options, Config config, PluginHost& host, Screen& screen) {
  PatientScreen of_first_run(screen);  // which is watched beside
  Supervisor supervisor(make_log(screen));
  if (host.changes() >= 0) supervisor.watch(host.changes());
  UrlFile url_file;
  if (const auto failed = start_all(options, config, host, supervisor, url_file, screen)) {
    supervisor.stop();
    return *failed;
  }
  say_what_runs(screen, config);
  FirstRun first(config, of_first_run.screen(), [&] { supervisor.wake(); });
  PluginReports reports(
      config, [&] { supervisor.wake(); }, make_log(screen));
  bool shown = false;
  int status = 0;
  while (!supervisor.stop_asked()) {
    supervisor.turn(longest_sleep(host, reports, steady_clock::now()));
    if (supervisor.take_reload()) host.reload();
    host.turn(supervisor, steady_clock::now());
    reports.turn(host, steady_clock::now());
    if (!first.served() && supervisor.ends(Stage::kCoordinator) >= kStarts) {
      status = refuse(screen, "the coordinator does not start");
      break;
    }
    if (first.done() && options.once) {
      status = first.status();
      break;
    }
    if (first.done() && !std::exchange(shown, true)) say_what_to_try(screen, options);
  }
  if (options.once && supervisor.stop_asked() && !first.done()) status = 1;
  first.stop();
  reports.stop();
  supervisor.stop();
  return status;
}

}  // namespace

int up(const UpOptions& options, Screen& terminal) {
  PatientScreen patient(terminal);
  Screen& screen = patient.screen();
  const Config& config = options.config;
  std::vector<PluginEntry> entries;
  bool good = true;
  for (const WorkerConfig& worker : config.workers) {
    const auto command = configured_worker(worker, config, screen.verbosity, options.env);
    if (!command) {
      refuse(screen, command.error().message);
      good = false;
      continue;
    }
    const std::string plugin = worker.folder.empty() ? command->argv.front() : "";
    entries.push_back({plugin, worker.folder, worker.verify, worker.count, worker.max, worker.slots, *command});
  }
  if (!good) return 2;
  PluginHost host(std::move(entries), make_log(screen));
  if (const auto looked = host.look(); !looked) {
    refuse(screen, looked.error().message);
    return 2;
  }
  if (auto made = make_data_dir(config.data_dir); !made) return refuse(screen, made.error().message);
  const auto lock = FileLock::acquire(fs::path(config.data_dir) / "up.lock");
  if (!lock) {
    const bool held = lock.error().code == Errc::kConflict;
    return refuse(screen, (held ? "another `muster up` uses " : "cannot have for itself ") + config.data_dir + ": " +
                              lock.error().message);
  }
  return supervise(options, config, host, screen);
}

}  // namespace muster::cli
