#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace muster::test {

struct Answer {
  int status = -1;  // exit status; -1: killed
  std::string out;  // stdout
};

/// A fleet of real processes: `muster up` of this build, in a temporary directory of its own. What is left of it is
/// killed and removed at the end. Throws std::runtime_error where nothing can be started. Thread: one.
class LiveFleet {
 public:
  explicit LiveFleet(const std::string& config);
  ~LiveFleet();
  LiveFleet(const LiveFleet&) = delete;
  LiveFleet& operator=(const LiveFleet&) = delete;

  void start();
  /// SIGTERM; the exit status of `muster up`.
  int stop();

  /// `muster ARGS` against this fleet.
  [[nodiscard]] Answer muster(const std::vector<std::string>& args) const;
  [[nodiscard]] nlohmann::json json(std::vector<std::string> args) const;  // with -o json; null when it failed
  /// All lines of `resources -o ndjson`.
  [[nodiscard]] std::vector<nlohmann::json> resources() const;

  /// Children of `muster up` whose command line holds `what`.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& what) const;
  /// SIGKILL to one of them; whether there was one.
  [[nodiscard]] bool kill_one(const std::string& what) const;

  /// Polls until `done` holds; false after a minute and a half.
  static bool eventually(const std::function<bool()>& done);

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] std::string log() const;

 private:
  [[nodiscard]] pid_t spawn(const std::vector<std::string>& args, const std::filesystem::path& out,
                            const std::filesystem::path& err) const;

  std::filesystem::path directory_;
  pid_t up_ = -1;
};

}  // namespace muster::test
