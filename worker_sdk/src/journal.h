#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <spdlog/fwd.h>

#include "schema/messages.h"

namespace muster {

/// Keeps the results of mutations until a coordinator has them, across the end of this process.
class Journal {
 public:
  struct Kept {
    Token token;
    Bytes reply;  // an encoded JobReply
  };

  struct Room {
    std::size_t results = 0, bytes = 0;
  };

  /// Of a result that a dead worker left: whether it is for this one to bring.
  using Wanted = std::function<bool(const Bytes& reply)>;

  virtual ~Journal() = default;

  /// Makes room for the result of a mutation, before anything is done: a result must not fail for want of it.
  /// errors   whatever keeps it from that; nothing is left behind
  /// thread   any
  virtual Result<void> begin(const Token& token) = 0;
  /// Keeps the result of what was begun; it is on disk when this returns.
  /// errors   kInternalFailure
  /// thread   any
  virtual Result<void> finish(const Token& token, const Bytes& reply) = 0;
  /// Forgets what was begun or finished; nothing happens where it was not.
  /// thread   any
  virtual void remove(const Token& token) = 0;
  /// Takes over what workers of the same pool that have died left unacknowledged, as far as it is wanted and there is
  /// room; the rest is left for another time, or another worker.
  /// thread   the loop's
  virtual std::vector<Kept> take_over(Room room, const Wanted& wanted) = 0;
};

/// An open file. Owns its descriptor.
class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();
  explicit operator bool() const { return descriptor_ >= 0; }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A directory of this worker alone, below one of its pool: a file `lock`, locked as long as the process lives, and
/// `<token>.result` for each mutation. A directory whose lock can be had is that of a dead worker, and so is what its
/// own has in it at the begin: ids can be given twice.
class FileJournal final : public Journal {
 public:
  /// Makes `pool` and the directories above it where need be, and in it the worker's own.
  /// errors   kInternalFailure and those of from_errno
  static Result<std::unique_ptr<FileJournal>> open(std::filesystem::path pool, const WorkerId& worker,
                                                   std::shared_ptr<spdlog::logger> log);
  /// Removes the directory if nothing is left in it.
  ~FileJournal() override;

  Result<void> begin(const Token& token) override;
  Result<void> finish(const Token& token, const Bytes& reply) override;
  void remove(const Token& token) override;
  std::vector<Kept> take_over(Room room, const Wanted& wanted) override;

 private:
  FileJournal(std::filesystem::path pool, std::filesystem::path own, File lock, std::shared_ptr<spdlog::logger> log);

  [[nodiscard]] std::filesystem::path path_of(const Token& token) const;
  /// Moves what a dead worker's directory holds here, as far as it is wanted and there is room; true: no result is left
  /// in it.
  bool empty_out(const std::filesystem::path& dead, const Wanted& wanted, Room& room, std::vector<Kept>& kept);
  /// The same of one file.
  bool take(const std::filesystem::path& path, const Wanted& wanted, Room& room, std::vector<Kept>& kept);

  const std::filesystem::path pool_, own_;
  const File lock_;
  const std::shared_ptr<spdlog::logger> log_;
  std::vector<std::filesystem::path> left_;  // in its own directory, by a worker of that id that has died
  std::mutex mutex_;                         // of begun_
  std::map<Token, File> begun_;  // open from begin() on, so that finish() cannot fail for want of a descriptor
};

}  // namespace muster
