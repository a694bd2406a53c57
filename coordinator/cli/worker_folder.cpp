#include "coordinator/cli/worker_folder.h"

#include <algorithm>
#include <ostream>
#include <string>

#include "coordinator/cli/patient_screen.h"
#include "coordinator/cli/plugin_reports.h"
#include "coordinator/cli/supervisor.h"

namespace muster::cli {
namespace {

using std::chrono::steady_clock;

constexpr Millis kTurn{1000};
constexpr Millis kDrain{10'500};  // the SDK ends within 10 s

}  // namespace

Millis longest_sleep(const PluginHost& host, const PluginReports& reports, TimePoint now) {
  const TimePoint due = std::min(host.next_due(), reports.next_due());
  return due <= now ? Millis{0} : std::min(kTurn, std::chrono::ceil<Millis>(due - now));
}

int host_plugins(PluginEntry entry, const Config& config, Screen& terminal) {
  PatientScreen patient(terminal);
  Screen& screen = patient.screen();
  const auto log = [&screen](const std::string& child, std::string_view line) {
    screen.err << log_line(child, line) << std::endl;
  };
  std::vector<PluginEntry> entries;
  entries.push_back(std::move(entry));
  PluginHost host(std::move(entries), log);
  if (const auto looked = host.look(); !looked) {
    screen.err << "muster: " << escape(looked.error().message) << std::endl;
    return 2;
  }
  Supervisor supervisor(log);
  if (host.changes() >= 0) supervisor.watch(host.changes());
  PluginReports reports(
      config, [&] { supervisor.wake(); }, log);
  while (!supervisor.stop_asked()) {
    if (supervisor.take_reload()) host.reload();
    host.turn(supervisor, steady_clock::now());
    reports.turn(host, steady_clock::now());
    supervisor.turn(longest_sleep(host, reports, steady_clock::now()));
  }
  reports.stop();
  supervisor.stop(kDrain);
  return 0;
}

}  // namespace muster::cli
