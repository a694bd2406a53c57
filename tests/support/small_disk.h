#pragma once

#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster::test {

/// A file system of a size of its own, in memory, until the end. Needs root and CAP_SYS_ADMIN.
class SmallDisk {
 public:
  /// `path`    a directory that is made, and everything below it
  /// `size`    as `mount` takes it: `24m`
  SmallDisk(std::filesystem::path path, const std::string& size) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);  // who uses it may live a little longer
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// False where this machine does not allow it.
  [[nodiscard]] bool mounted() const { return mounted_; }
  /// Takes every byte that is left.
  void fill() const {
    std::ofstream file(filler(), std::ios::binary | std::ios::app);
    const std::string page(4096, 'x');
    while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }
  void make_room() const { std::filesystem::remove(filler()); }

 private:
  [[nodiscard]] std::filesystem::path filler() const { return path_ / "filler"; }

  const std::filesystem::path path_;
  bool mounted_ = false;
};

}  // namespace muster::test
