#include "coordinator/checkpointer.h"

#include <sqlite3.h>

#include <utility>

namespace muster {
namespace {

// Of 8 KiB each. Pages that are written again and again are copied once for all that the WAL holds of them, so that
// copying seldom is cheaper; what a commit finds to do by itself grows with it.
constexpr int kWorthACopy = 2'500;
constexpr int kMost = 15'000;  // the WAL begins anew once all of it is copied, which a thread that is chased never ends

void copy(sqlite3* connection, const char* name) noexcept {
  // What fails here is tried again: by the next commits, or at the latest when the store is closed.
  (void)sqlite3_wal_checkpoint_v2(connection, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

}  // namespace

std::unique_ptr<Checkpointer> Checkpointer::start(sqlite::Database& database, const std::string& path) {
  auto own = sqlite::Database::open(path);
  if (!own || !own->script("SELECT count(*) FROM sqlite_schema")) return nullptr;  // only now it knows of the WAL
  return std::unique_ptr<Checkpointer>(new Checkpointer(database, std::move(*own)));
}

Checkpointer::Checkpointer(sqlite::Database& database, sqlite::Database own)
    : database_(database),
      own_(std::move(own)),
      next_(kWorthACopy),
      thread_([this](const std::stop_token& stop) { run(stop); }) {
  sqlite3_wal_hook(database_.handle(), on_commit, this);
}

Checkpointer::~Checkpointer() {
  sqlite3_wal_hook(database_.handle(), nullptr, nullptr);
}

int Checkpointer::on_commit(void* self, sqlite3* connection, const char* name, int frames) noexcept {
  if (frames >= kMost) copy(connection, name);
  static_cast<Checkpointer*>(self)->note(frames);
  return SQLITE_OK;
}

void Checkpointer::note(int frames) {
  if (frames < frames_) next_ = kWorthACopy;  // the WAL has begun anew
  frames_ = frames;
  if (frames < next_) return;
  next_ = frames + kWorthACopy;
  {
    const std::lock_guard lock(mutex_);
    is_called_ = true;
  }
  called_.notify_one();
}

void Checkpointer::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (called_.wait(lock, stop, [this] { return is_called_; })) {
    is_called_ = false;
    lock.unlock();
    copy(own_.handle(), nullptr);
    lock.lock();
  }
}

}  // namespace muster
