#include <spdlog/logger.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>

#include "notes.h"

namespace {

/// A session that all jobs of a worker share. This one compares a key with a file; others log in somewhere.
class Shelf {
 public:
  muster::Result<void> open(muster::InitializeContext& context) {
    const auto root = context.env("NOTES_ROOT");
    if (!root) return {};  // a worker without one asks for no key
    lock_ = std::filesystem::path(*root) / ".key";
    const auto key = context.credential("NOTES_KEY");
    if (!key) return key.error();
    std::ifstream file(lock_);
    if (!file) return muster::from_errno(errno, "open " + lock_.string());
    std::string wanted;
    std::getline(file, wanted);
    if (*key != wanted) return muster::access_denied("NOTES_KEY is not the key in " + lock_.string());
    context.log().info("opened {}", *root);
    return {};
  }
  muster::Result<void> check(muster::Context&) const {
    if (lock_.empty() || std::filesystem::exists(lock_)) return {};
    return muster::unavailable(lock_.string() + " is gone: is the file system mounted?");
  }
  void close(muster::Context& context) { context.log().info("closed"); }

 private:
  std::filesystem::path lock_;
};

}  // namespace

void add_life(muster::Plugin& plugin) {
  const auto shelf = std::make_shared<Shelf>();
  plugin.initialize([shelf](muster::InitializeContext& context) { return shelf->open(context); })
      .health([shelf](muster::Context& context) { return shelf->check(context); })
      .cleanup([shelf](muster::Context& context) { shelf->close(context); });
}
