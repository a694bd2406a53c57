#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/cli/client.h"
#include "coordinator/cli/plugin_host.h"
#include "coordinator/config.h"

namespace muster::cli {

/// What an operator should read of how a coordinator takes reports: each trouble once, and that it is over. One that
/// may pass is told when it has lasted, as a coordinator that is started again is nothing to worry about.
class ReportTrouble {
 public:
  /// `error`   of the last report; none: it was taken
  /// returns   what to log; empty: nothing
  std::string heard(const std::optional<Error>& error, TimePoint now);

 private:
  std::optional<TimePoint> since_;
  std::string told_;
};

/// Tells a coordinator what becomes of the plugins here, on change and every 5 s, and the host what the coordinator
/// says of their workers. Talks on a thread of its own; turn() never waits.
class PluginReports {
 public:
  /// `config`   where the fleet is
  /// `wake`     called on the thread when turn() has something to do
  /// `log`      called by turn() with what goes wrong
  PluginReports(const Config& config, std::function<void()> wake, Supervisor::Log log);
  ~PluginReports();
  PluginReports(const PluginReports&) = delete;
  PluginReports& operator=(const PluginReports&) = delete;

  /// Thread: that of the host.
  void turn(PluginHost& host, TimePoint now);
  [[nodiscard]] TimePoint next_due() const { return due_; }

  /// Ends the talking within two seconds; the destructor waits for it.
  void stop() { thread_.request_stop(); }

 private:
  void talk(const std::stop_token& stop, const Config& config);
  static Result<Json> ask(std::unique_ptr<Client>& client, const Config& config, const Json& request);
  void take_answer(PluginHost& host, TimePoint now);

  std::string host_, supervisor_;
  std::function<void()> wake_;
  Supervisor::Log log_;
  ReportTrouble trouble_;
  std::vector<PluginHost::Plugin> told_;
  TimePoint due_;
  TimePoint answered_;

  std::mutex mutex_;  // guards the two below
  std::condition_variable_any news_;
  std::optional<Json> request_;
  std::optional<Result<Json>> answer_;
  std::jthread thread_;  // last: it uses the rest
};

/// The request that says so: verb `supervise`.
Json supervise_request(const std::string& supervisor, const std::string& host,
                       const std::vector<PluginHost::Plugin>& plugins);

/// What the answer to it says.
std::vector<WorkerNews> worker_news(const Json& answer);

}  // namespace muster::cli
