#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "coordinator/sqlite.h"

namespace muster {

/// Copies what is committed from a store's WAL into its file, in a thread of its own: a copy ends with a sync, and the
/// commit that would make it otherwise waits for the disk. Thread: that of `database`.
class Checkpointer {
 public:
  /// Null where the file cannot be opened once more: each commit then looks after the WAL alone.
  /// `database`   open on the file `path`, in WAL mode; outlives this
  static std::unique_ptr<Checkpointer> start(sqlite::Database& database, const std::string& path);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

 private:
  Checkpointer(sqlite::Database& database, sqlite::Database own);
  static int on_commit(void* self, sqlite3* connection, const char* name, int frames) noexcept;
  void note(int frames);
  void run(const std::stop_token& stop);

  sqlite::Database& database_;
  sqlite::Database own_;  // the thread's
  int frames_ = 0;        // in the WAL at the last commit
  int next_;              // frames in the WAL that are worth a copy
  std::mutex mutex_;      // of the next two
  std::condition_variable_any called_;
  bool is_called_ = false;
  std::jthread thread_;  // last: it uses what is above
};

}  // namespace muster
