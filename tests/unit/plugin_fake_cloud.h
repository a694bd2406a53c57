#pragma once

// A fake cloud that is written to, for the tests of that.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "plugins/fake/fake.h"
#include "support/scratch.h"
#include "worker_sdk/testing/fake_context.h"

namespace muster::fake::test_cloud {

inline constexpr const char* kThing = "FAKE::Cloud::Thing0";
inline constexpr const char* kPart = "FAKE::Cloud::Part";

/// A file for one test's cloud, gone at the end.
class StateFile {
 public:
  /// What a user sees with `sqlite3`: the first column of each row.
  [[nodiscard]] std::vector<std::string> query(const std::string& sql) const {
    sqlite3* raw = nullptr;
    sqlite3_open(path.c_str(), &raw);
    sqlite3_busy_timeout(raw, 30'000);  // the plugin may be closing the file
    std::vector<std::string> rows;
    const auto take = [](void* to, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(values[0] == nullptr ? "NULL" : values[0]);
      return 0;
    };
    const int status = sqlite3_exec(raw, sql.c_str(), take, &rows, nullptr);
    const std::string error = sqlite3_errmsg(raw);
    sqlite3_close(raw);
    if (status != SQLITE_OK) throw std::runtime_error(error);
    return rows;
  }
  [[nodiscard]] int count(const std::string& sql) const { return std::stoi(query(sql).at(0)); }
  /// Everything that stands in the file and its journal.
  [[nodiscard]] std::string bytes() const {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }

 private:
  const muster::test::Scratch scratch_;

 public:
  const std::string path = scratch_.path / "cloud.db";
};

/// One worker's plugin, with a clock that is moved.
struct Cloud {
  std::atomic<std::int64_t> now = 1'700'000'000'000;
  Plugin plugin{fake::plugin_info()};
  Json config;

  explicit Cloud(const StateFile& file, Json more = Json::object()) : config(std::move(more)) {
    config["state"] = file.path;
    if (!config.contains("resources")) config["resources"] = 0;
    fake::add_types(plugin, [this] { return now.load(); });
  }

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation, JobContext& context) const {
    Job job;
    job.ns = "FAKE";
    job.type = type;
    job.target = Target{TargetId("test"), "test", {}};
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }
  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    return run(type, std::move(operation), context);
  }
  [[nodiscard]] JobResult create(const std::string& key, const Json& properties, const char* type = kThing) const {
    return run(type, CreateJob{key, {properties.dump(), {}}, std::nullopt});
  }
  [[nodiscard]] JobResult update(const std::string& key, const std::string& id, const Json& desired,
                                 Precondition precondition = {}, const char* type = kThing) const {
    return run(type, UpdateJob{key, id, "{}", {desired.dump(), {}}, "[]", std::move(precondition)});
  }
  [[nodiscard]] JobResult remove(const std::string& key, const std::string& id, Precondition precondition = {},
                                 const char* type = kThing) const {
    return run(type, DeleteJob{key, id, std::move(precondition)});
  }
  [[nodiscard]] ReadItem read(const std::string& id, const char* type = kThing) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
  [[nodiscard]] std::vector<std::string> list(std::uint32_t page_size = 100) const {
    std::vector<std::string> ids;
    for (const auto& item : testing::list_all(plugin, kThing, config, std::nullopt, page_size).items) {
      ids.push_back(item.native_id);
    }
    return ids;
  }
};

inline MutationResult done(const JobResult& result) {
  if (const auto* error = std::get_if<Error>(&result)) throw std::runtime_error(error->message);
  return std::get<MutationResult>(result);
}

inline Errc code(const JobResult& result) {
  const auto* error = std::get_if<Error>(&result);
  return error == nullptr ? Errc{0} : error->code;
}

inline bool there(const ReadItem& answer) {
  return std::holds_alternative<Item>(answer);
}

/// How a process ended that ran `act`.
template <typename Act>
int status_of_process(Act act) {
  const auto child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace muster::fake::test_cloud
