#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker_sdk/src/journal.h"

namespace muster::testing {

class MemoryJournal;

/// What outlives the workers whose journals lie on it. The faults are those of a real one.
struct MemoryDisk {
  struct File {
    const MemoryJournal* owner;  // null: it has died
    std::optional<Bytes> reply;  // none: begun
  };
  std::map<Token, File> files{};
  bool full = false;    // nothing can be begun
  bool broken = false;  // nothing can be finished
};

/// A journal in memory. Its end is the death of its worker. Thread: one.
class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>()) : disk_(std::move(disk)) {}
  ~MemoryJournal() override {
    for (auto& [token, file] : disk_->files) {
      if (file.owner == this) file.owner = nullptr;
    }
  }

  Result<void> begin(const Token& token) override {
    if (disk_->full) return Error{.code = Errc::kLimit, .message = "/\xff/journal: no space left on device"};
    if (!disk_->files.emplace(token, MemoryDisk::File{this, {}}).second) {
      return Error{.code = Errc::kAlreadyExists, .message = "begun already"};
    }
    return {};
  }
  Result<void> finish(const Token& token, const Bytes& reply) override {
    const auto found = disk_->files.find(token);
    if (disk_->broken || found == disk_->files.end()) return Error{.message = "input/output error"};
    found->second.reply = reply;
    return {};
  }
  void remove(const Token& token) override { disk_->files.erase(token); }
  std::vector<Kept> take_over(Room room, const Wanted& wanted) override {
    std::vector<Kept> kept;
    std::erase_if(disk_->files, [](const auto& entry) { return !entry.second.owner && !entry.second.reply; });
    for (auto& [token, file] : disk_->files) {
      if (file.owner != nullptr || kept.size() == room.results || !wanted(*file.reply)) continue;
      file.owner = this;
      kept.push_back({token, *file.reply});
    }
    return kept;
  }

 private:
  std::shared_ptr<MemoryDisk> disk_;
};

}  // namespace muster::testing
