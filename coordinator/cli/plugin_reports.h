#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/cli/client.h"
#include "coordinator/cli/plugin_host.h"
#include "coordinator/config.h"

namespace muster::cli {

/// Tells a coordinator what becomes of the plugins here, on change and every 5 s, and the host what the coordinator
/// says of their workers. Talks on a thread of its own; turn() never waits.
class PluginReports {
 public:
  /// `config`   where the fleet is
  /// `wake`     called on the thread when turn() has something to do
  PluginReports(const Config& config, std::function<void()> wake);
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
  void take_answer(PluginHost& host, TimePoint now);

  std::string host_, supervisor_;
  std::function<void()> wake_;
  std::vector<PluginHost::Plugin> told_;
  TimePoint due_;
  TimePoint answered_;

  std::mutex mutex_;  // guards the two below
  std::condition_variable_any news_;
  std::optional<Json> request_, answer_;
  std::jthread thread_;  // last: it uses the rest
};

/// The request that says so: verb `supervise`.
Json supervise_request(const std::string& supervisor, const std::string& host,
                       const std::vector<PluginHost::Plugin>& plugins);

/// What the answer to it says.
std::vector<WorkerNews> worker_news(const Json& answer);

}  // namespace muster::cli
