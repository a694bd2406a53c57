#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace muster::test {

struct Answer {
  int status = -1;  // exit status; -1: killed
  std::string out;  // stdout
  std::string err;  // stderr
};

/// A process to start. The kernel kills it when this process ends.
struct Program {
  std::vector<std::string> argv;                   // argv[0] is a path
  std::map<std::string, std::string> environment;  // added to our own
  std::filesystem::path out, err;                  // files that its output is added to
  bool as_nobody = false;                          // gives up root for the user `nobody`
};
/// Throws std::runtime_error. Thread: one that outlives the process.
pid_t spawn(const Program& program);
/// Waits for the end; the exit status, -1: killed.
int wait_for(pid_t pid);

/// Executables of this build: `muster`, `muster-plugin-…`.
std::filesystem::path built(const std::string& name);
/// Text of a file, empty when there is none.
std::string slurp(const std::filesystem::path& path);

/// What a user of a fleet can do, with a directory that is removed at the end. Thread: one.
class FleetClient {
 public:
  using Json = nlohmann::json;

  FleetClient(const FleetClient&) = delete;
  FleetClient& operator=(const FleetClient&) = delete;

  /// `muster ARGS` against this fleet.
  [[nodiscard]] Answer muster(const std::vector<std::string>& args) const { return finish(begin(args)); }
  /// The same in two steps: what was begun goes on beside other calls until it is finished.
  struct Task {
    pid_t process = -1;
    std::filesystem::path out, err;
  };
  [[nodiscard]] Task begin(const std::vector<std::string>& args) const;
  [[nodiscard]] Answer finish(const Task& task) const;
  [[nodiscard]] Json json(std::vector<std::string> args) const;  // with -o json; null when it failed
  /// All lines of `resources -o ndjson ARGS`.
  [[nodiscard]] std::vector<Json> resources(const std::vector<std::string>& args = {}) const;

  /// The report of `discover --wait ARGS`.
  [[nodiscard]] Json discover(const std::vector<std::string>& args = {}) const;
  /// Events after a sequence of which the type matches.
  [[nodiscard]] std::vector<Json> events(std::uint64_t after, const std::string& type = "*") const;
  /// `discovered PG::Role app`: resource events after a sequence, sorted.
  [[nodiscard]] std::vector<std::string> resource_events(std::uint64_t after) const;
  /// Sequence of the newest event.
  [[nodiscard]] std::uint64_t last_event() const;

  /// Whether a discovery that somebody asked for has read something.
  [[nodiscard]] bool user_run_reads() const;

  /// Polls until `done` holds; false after three minutes.
  static bool eventually(const std::function<bool()>& done);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  /// What its processes and ours wrote.
  [[nodiscard]] std::string log() const;

 protected:
  FleetClient();
  ~FleetClient();
  /// `muster WORDS` with the options that say where the fleet is.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& words) const;
  /// The same for what waits for an answer: with a --timeout that is long, unless `args` have one.
  [[nodiscard]] std::vector<std::string> question(std::vector<std::string> args) const;

  std::vector<std::string> where_{};  // more options that say where the fleet is

 private:
  std::filesystem::path directory_;
  mutable int tasks_ = 0;
};

}  // namespace muster::test
