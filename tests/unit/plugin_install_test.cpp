#include "coordinator/cli/plugin_install.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "coordinator/cli/checksums.h"
#include "coordinator/cli/plugin_folder.h"
#include "coordinator/file_lock.h"
#include "support/scratch.h"

using namespace muster;
using namespace muster::cli;
namespace fs = std::filesystem;

namespace {

const std::string kSumOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A folder of plugins, and beside it what is put there.
struct Store : test::Scratch {
  Store() { fs::create_directory(folder); }

  [[nodiscard]] fs::path built(const std::string& text, const std::string& name = "muster-plugin-x") const {
    std::ofstream(path / name) << text;
    fs::permissions(path / name, fs::perms::owner_all);
    return path / name;
  }
  void install(const std::string& text, const std::string& name = "muster-plugin-x") const {
    REQUIRE(install_plugin(folder, built(text, name), "").value() == name);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(folder / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder)) names.push_back(each.path().filename());
    std::ranges::sort(names);
    return names;
  }
  [[nodiscard]] InstalledPlugin only() const {
    const auto plugins = installed_plugins(folder);
    REQUIRE(plugins);
    REQUIRE(plugins->size() == 1);
    return plugins->front();
  }

  fs::path folder = path / "plugins";
};
using Names = std::vector<std::string>;

/// Whether `holds` is so in a process whose kernel answers renameat2() with `error`, as some file systems do.
bool where_renameat2_fails(int error, const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<sock_filter, 4> filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{filter.size(), filter.data()};
    const bool set =
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    ::_exit(set && holds() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace

TEST_CASE("a plugin that is installed is started, and its checksum is listed") {
  const Store store;
  store.install("abc");
  CHECK(store.text("muster-plugin-x") == "abc");
  CHECK(store.text("SHA256SUMS") == kSumOfAbc + "  muster-plugin-x\n");
  CHECK(store.files() == Names{".lock", "SHA256SUMS", "muster-plugin-x"});
  const auto plugin = store.only();
  CHECK(plugin.version == kSumOfAbc);
  CHECK(plugin.refusal.empty());
  CHECK(plugin.verified);
  CHECK(plugin.previous.empty());
  store.install("other", "b");
  CHECK(parse_checksums(store.text("SHA256SUMS"))->size() == 2);
}

TEST_CASE("a version that is installed over another can be rolled back, and forth") {
  const Store store;
  store.install("abc");
  store.install("abcd");
  CHECK(store.only().previous == kSumOfAbc);
  CHECK(store.only().refusal.empty());
  store.install("abcd");  // the same once more is no version of its own
  CHECK(store.only().previous == kSumOfAbc);

  CHECK(roll_back_plugin(store.folder, "x").value() == "muster-plugin-x");
  CHECK(store.text("muster-plugin-x") == "abc");
  CHECK(store.only().version == kSumOfAbc);
  CHECK(store.only().verified);
  CHECK(roll_back_plugin(store.folder, "muster-plugin-x"));
  CHECK(store.text("muster-plugin-x") == "abcd");
  CHECK(store.only().previous == kSumOfAbc);
  CHECK(store.files() == Names{".lock", ".muster-plugin-x.previous", "SHA256SUMS", "muster-plugin-x"});
}

TEST_CASE("a version is rolled back also where two files cannot change their names at once") {
  const Store store;
  store.install("abc");
  store.install("abcd");
  CHECK(where_renameat2_fails(EINVAL, [&] { return static_cast<bool>(roll_back_plugin(store.folder, "x")); }));
  CHECK(store.text("muster-plugin-x") == "abc");
  CHECK(store.only().verified);
  CHECK(roll_back_plugin(store.folder, "x"));
  CHECK(store.text("muster-plugin-x") == "abcd");
  CHECK(store.files() == Names{".lock", ".muster-plugin-x.previous", "SHA256SUMS", "muster-plugin-x"});
}

TEST_CASE("a version that cannot be installed leaves the one that runs listed") {
  const Store store;
  store.install("abc");
  fs::create_directories(store.folder / ".muster-plugin-x.previous" / "in the way");
  CHECK_FALSE(install_plugin(store.folder, store.built("abcd"), ""));
  CHECK(store.text("muster-plugin-x") == "abc");
  CHECK(store.only().verified);
}

TEST_CASE("a version that cannot be rolled back leaves the one that runs listed") {
  const Store store;
  store.install("abc");
  store.install("abcd");
  CHECK(where_renameat2_fails(EACCES, [&] { return !roll_back_plugin(store.folder, "x"); }));
  CHECK(store.text("muster-plugin-x") == "abcd");
  CHECK(store.only().verified);
}

TEST_CASE("a plugin without a version before is not rolled back") {
  const Store store;
  store.install("abc");
  const auto refused = roll_back_plugin(store.folder, "x");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kNotFound);
  CHECK(store.text("muster-plugin-x") == "abc");
}

TEST_CASE("a version that no folder would start is not rolled back to") {
  const Store store;
  store.install("abc");
  fs::permissions(store.folder / "muster-plugin-x", fs::perms::owner_read | fs::perms::owner_write);
  store.install("abcd");
  const auto refused = roll_back_plugin(store.folder, "x");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("chmod +x"));
  CHECK(store.text("muster-plugin-x") == "abcd");
  CHECK(store.only().refusal.empty());
  fs::permissions(store.folder / ".muster-plugin-x.previous", fs::perms::owner_all);
  CHECK(roll_back_plugin(store.folder, "x"));
  CHECK(store.text("muster-plugin-x") == "abc");
}

TEST_CASE("what has another checksum than it must have is not installed") {
  const Store store;
  store.install("abc");
  const auto refused = install_plugin(store.folder, store.built("abcd"), kSumOfAbc);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::kInvalidRequest);
  CHECK_THAT(refused.error().message, Catch::Contains(kSumOfAbc));
  CHECK(store.text("muster-plugin-x") == "abc");
  CHECK(store.files() == Names{".lock", "SHA256SUMS", "muster-plugin-x"});
  CHECK(install_plugin(store.folder, store.built("abc"), kSumOfAbc));
}

TEST_CASE("only what a folder starts is installed") {
  const Store store;
  const auto code = [&](const fs::path& folder, const fs::path& file) {
    return install_plugin(folder, file, "").error().code;
  };
  CHECK(code(store.folder, store.path / "none") == Errc::kNotFound);
  CHECK(code(store.path / "none", store.built("abc")) == Errc::kNotFound);
  CHECK(code(store.folder, store.folder) == Errc::kInvalidRequest);
  CHECK(code(store.folder, store.built("abc", ".hidden")) == Errc::kInvalidRequest);
  CHECK(code(store.folder, store.built("abc", "SHA256SUMS")) == Errc::kInvalidRequest);
  const auto file = store.built("abc");
  fs::permissions(file, fs::perms::owner_read);
  if (geteuid() != 0) CHECK(code(store.folder, file) == Errc::kInvalidRequest);
  fs::permissions(file, fs::perms::none);
  CHECK(code(store.folder, file) == Errc::kInvalidRequest);
}

TEST_CASE("a name that a list of checksums cannot say is not installed, and leaves the list as it is") {
  const Store store;
  store.install("abc");
  for (const std::string name : {"muster-plugin-y\nz", "muster-plugin-y\r"}) {
    const auto refused = install_plugin(store.folder, store.built("abcd", name), "");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::kInvalidRequest);
  }
  CHECK(store.only().refusal.empty());
  CHECK(store.text("SHA256SUMS") == kSumOfAbc + "  muster-plugin-x\n");
}

TEST_CASE("no list of checksums is begun in a folder that runs plugins without") {
  const Store store;
  fs::copy_file(store.built("abc", "b"), store.folder / "b");
  store.install("abc");
  CHECK_FALSE(fs::exists(store.folder / "SHA256SUMS"));
  const auto plugins = installed_plugins(store.folder).value();
  for (const auto& plugin : plugins) CHECK(plugin.refusal.empty());
}

TEST_CASE("no list of checksums is begun that would refuse a plugin that is switched off") {
  const Store store;
  fs::copy_file(store.built("abc", "b"), store.folder / "b");
  REQUIRE(disable_plugin(store.folder, "b"));
  store.install("abc");
  REQUIRE(enable_plugin(store.folder, "b"));
  const auto plugins = installed_plugins(store.folder).value();
  CHECK(plugins.size() == 2);
  for (const auto& plugin : plugins) CHECK(plugin.refusal.empty());
}

TEST_CASE("a list of checksums keeps what it says of others") {
  const Store store;
  std::ofstream(store.folder / "SHA256SUMS") << "# ours\n" << kSumOfAbc << "  b\n";
  store.install("abcd");
  store.install("abc");
  CHECK(store.text("SHA256SUMS") == "# ours\n" + kSumOfAbc + "  b\n" + kSumOfAbc + "  muster-plugin-x\n");
  REQUIRE(remove_plugin(store.folder, "x"));
  CHECK(store.text("SHA256SUMS") == "# ours\n" + kSumOfAbc + "  b\n");
}

TEST_CASE("where the list of checksums cannot be kept nothing is changed, and no version lost") {
  const Store store;
  store.install("abc");
  store.install("abcd");
  fs::rename(store.folder / "SHA256SUMS", store.path / "list");
  SECTION("a link") {
    fs::create_symlink(store.path / "list", store.folder / "SHA256SUMS");
  }
  SECTION("a folder") {
    fs::create_directory(store.folder / "SHA256SUMS");
  }
  const auto refused = install_plugin(store.folder, store.built("abcde"), "");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, Catch::Contains("SHA256SUMS cannot be read"));
  CHECK_FALSE(roll_back_plugin(store.folder, "x"));
  CHECK(store.text("muster-plugin-x") == "abcd");
  CHECK(store.text(".muster-plugin-x.previous") == "abc");
  CHECK(store.files() == Names{".lock", ".muster-plugin-x.previous", "SHA256SUMS", "muster-plugin-x"});
}

TEST_CASE("no link that somebody put into a folder leads out of it") {
  const Store store;
  const auto outside = store.built("mine", "outside");
  for (const char* name : {"muster-plugin-x.new", "SHA256SUMS.new", ".muster-plugin-x.previous.new"}) {
    fs::create_symlink(outside, store.folder / name);
  }
  store.install("abc");
  store.install("abcd");
  CHECK(store.only().refusal.empty());
  fs::remove(store.folder / ".lock");
  fs::create_symlink(outside, store.folder / ".lock");
  CHECK_FALSE(install_plugin(store.folder, store.built("abc"), ""));
  std::ifstream file(outside);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "mine");
}

TEST_CASE("a plugin whose checksum is wrong is right again when it is installed once more") {
  const Store store;
  store.install("abc");
  std::ofstream(store.folder / "SHA256SUMS") << std::string(64, '0') << "  muster-plugin-x\n";
  CHECK_FALSE(store.only().refusal.empty());
  store.install("abc");
  CHECK(store.only().refusal.empty());
}

TEST_CASE("a plugin that the folder does not start is started when it is installed once more") {
  const Store store;
  store.install("abc");
  store.install("abcd");
  const auto place = store.folder / "muster-plugin-x";
  SECTION("as it cannot be executed") {
    fs::permissions(place, fs::perms::owner_read | fs::perms::owner_write);
    REQUIRE(installed_plugins(store.folder)->empty());
  }
  SECTION("as everybody can write it") {
    fs::permissions(place, fs::perms::all);
    REQUIRE_FALSE(store.only().refusal.empty());
  }
  store.install("abcd");
  CHECK(store.only().refusal.empty());
  CHECK(store.only().previous == kSumOfAbc);
}

TEST_CASE("a plugin is switched off and on") {
  const Store store;
  store.install("abc");
  CHECK(disable_plugin(store.folder, "x").value() == "muster-plugin-x");
  CHECK(disable_plugin(store.folder, "x"));
  CHECK(store.only().disabled);
  CHECK(store.only().file == "muster-plugin-x");
  CHECK(store.only().version == kSumOfAbc);
  CHECK(PluginFolder(store.folder, Verify::kIfListed).read()->files.empty());
  CHECK(install_plugin(store.folder, store.built("abcd"), "").error().code == Errc::kConflict);
  CHECK(enable_plugin(store.folder, "x"));
  CHECK(enable_plugin(store.folder, "x"));
  CHECK(store.only().refusal.empty());
}

TEST_CASE("a plugin that was put beside one that is switched off is switched off, too") {
  const Store store;
  store.install("abc");
  REQUIRE(disable_plugin(store.folder, "x"));
  fs::copy_file(store.built("abcd"), store.folder / "muster-plugin-x");  // as by hand
  REQUIRE(PluginFolder(store.folder, Verify::kIfListed).read()->files.size() == 1);
  CHECK(disable_plugin(store.folder, "x").value() == "muster-plugin-x");
  CHECK(PluginFolder(store.folder, Verify::kIfListed).read()->files.empty());
  CHECK(store.text(".muster-plugin-x.disabled") == "abcd");
}

TEST_CASE("a plugin that is removed leaves nothing") {
  const Store store;
  store.install("abc");
  store.install("abcd");
  SECTION("as it is") {}
  SECTION("switched off") {
    REQUIRE(disable_plugin(store.folder, "x"));
  }
  CHECK(remove_plugin(store.folder, "x").value() == "muster-plugin-x");
  CHECK(store.files() == Names{".lock", "SHA256SUMS"});
  CHECK(store.text("SHA256SUMS").empty());
}

TEST_CASE("what a folder does not have is told, and nothing outside of it is touched") {
  const Store store;
  store.install("abc");
  const auto outside = store.built("abc", "outside");
  for (const std::string name : {"y", "../outside", "", "SHA256SUMS", ".lock"}) {
    CAPTURE(name);
    CHECK(remove_plugin(store.folder, name).error().code == Errc::kNotFound);
    CHECK(disable_plugin(store.folder, name).error().code == Errc::kNotFound);
    CHECK(enable_plugin(store.folder, name).error().code == Errc::kNotFound);
    CHECK(roll_back_plugin(store.folder, name).error().code == Errc::kNotFound);
  }
  CHECK(fs::exists(outside));
  CHECK(store.only().verified);
}

TEST_CASE("one at a time changes a folder") {
  const Store store;
  const auto held = FileLock::acquire(store.folder / ".lock");
  REQUIRE(held);
  CHECK(install_plugin(store.folder, store.built("abc"), "").error().code == Errc::kConflict);
  CHECK(remove_plugin(store.folder, "x").error().code == Errc::kConflict);
  CHECK(store.files() == Names{".lock"});
}
