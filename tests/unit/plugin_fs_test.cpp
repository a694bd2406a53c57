#include "plugins/fs/fs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "support/scratch.h"
#include "worker_sdk/testing/fake_context.h"

namespace stdfs = std::filesystem;
using namespace muster;

namespace {

/// A directory of its own, gone at the end.
class Tree {
 public:
  Tree() { chmod(root.c_str(), 0755); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    std::error_code ignored;
    for (const auto& entry : stdfs::directory_iterator(root, ignored)) {  // some tests close directories
      if (stdfs::is_directory(entry.symlink_status())) chmod(entry.path().c_str(), 0755);
    }
  }

  std::string operator/(const std::string& name) const { return root + "/" + name; }
  std::string directory(const std::string& name) const {
    stdfs::create_directories(*this / name);
    return *this / name;
  }
  std::string file(const std::string& name, const std::string& content = "") const {
    std::ofstream(*this / name, std::ios::binary) << content;
    return *this / name;
  }
  std::string link(const std::string& name, const std::string& target) const {
    if (symlink(target.c_str(), (*this / name).c_str()) != 0) throw std::runtime_error("symlink");
    return *this / name;
  }

  const test::Scratch scratch;
  const std::string root = scratch.path;
};

/// Root may read everything: while one of these lives, the process is nobody.
class WithoutPrivileges {
 public:
  WithoutPrivileges() : was_root_(geteuid() == 0) {
    if (was_root_ && seteuid(65534) != 0) throw std::runtime_error("seteuid");
  }
  WithoutPrivileges(const WithoutPrivileges&) = delete;
  WithoutPrivileges& operator=(const WithoutPrivileges&) = delete;
  ~WithoutPrivileges() {
    if (was_root_ && seteuid(0) != 0) std::abort();
  }

 private:
  bool was_root_;
};

struct Fs {
  Plugin plugin{fs::plugin_info()};
  Json config;

  explicit Fs(Json target_config) : config(std::move(target_config)) { fs::add_types(plugin); }
  explicit Fs(const Tree& tree) : Fs(Json{{"root", tree.root}}) {}

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    return run(type, std::move(operation), context);
  }
  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation, JobContext& context) const {
    Job job;
    job.ns = "FS";
    job.type = type;
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }

  [[nodiscard]] ListResult list(const std::string& type, const std::string& parent, std::uint32_t size = 100) const {
    return testing::list_all(plugin, type, config, Parent{"FS::Directory", parent, "{}"}, size);
  }
  [[nodiscard]] std::vector<std::string> ids(const std::string& type, const std::string& parent,
                                             std::uint32_t size = 100) const {
    std::vector<std::string> found;
    for (const auto& item : list(type, parent, size).items) found.push_back(item.native_id);
    return found;
  }
  [[nodiscard]] Error list_error(const std::string& type, const std::string& parent) const {
    return std::get<Error>(run(type, ListJob{Parent{"FS::Directory", parent, "{}"}, "", 100}));
  }

  [[nodiscard]] ReadItem read(const std::string& type, const std::string& id) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
  [[nodiscard]] Json properties(const std::string& type, const std::string& id) const {
    return Json::parse(std::get<Item>(read(type, id)).properties);
  }
  [[nodiscard]] Errc read_error(const std::string& type, const std::string& id) const {
    return std::get<Error>(read(type, id)).code;
  }
};

const std::vector<std::string> kTypes = {"FS::Directory", "FS::File", "FS::Symlink"};

}  // namespace

TEST_CASE("the manifest holds together") {
  const auto manifest = Fs(Json{{"root", "/"}}).plugin.manifest();
  CHECK(manifest.ns == "FS");
  REQUIRE(manifest.types.size() == 3);
  for (const auto& type : manifest.types) {
    CHECK(type.parent == "FS::Directory");
    CHECK(type.list_gives == ListGives::kProperties);
    CHECK(Json::accept(type.schema));
  }
  CHECK(Json::parse(manifest.types[1].schema)["properties"]["content"]["writeOnly"] == true);
  CHECK(Json::parse(manifest.config_schema)["required"] == Json{"root"});
}

TEST_CASE("without a parent only the root is listed") {
  const Tree tree;
  tree.directory("sub");
  for (const std::string slash : {"", "/", "//"}) {
    const Fs fs(Json{{"root", tree.root + slash}});
    const auto listed = testing::list_all(fs.plugin, "FS::Directory", fs.config);
    REQUIRE(listed.items.size() == 1);
    CHECK(listed.items[0].native_id == tree.root);
    CHECK(Json::parse(listed.items[0].properties)["path"] == tree.root);
    CHECK(std::get<Item>(fs.read("FS::Directory", tree.root)) == listed.items[0]);
    CHECK(fs.ids("FS::Directory", tree.root) == std::vector{tree / "sub"});
  }
  CHECK(std::get<Error>(Fs(tree).run("FS::File", ListJob{})).code == Errc::kInvalidRequest);
}

TEST_CASE("each type lists its own kind, with all properties") {
  const Tree tree;
  const auto directory = tree.directory("d");
  const auto file = tree.file("f", "abc");
  const auto link = tree.link("l", "no/where");
  chmod(directory.c_str(), 01777);
  chmod(file.c_str(), 04750);
  const timespec times[2] = {{0, 0}, {1'700'000'000, 5}};
  utimensat(AT_FDCWD, file.c_str(), times, 0);

  const Fs fs(tree);
  CHECK(fs.ids("FS::Directory", tree.root) == std::vector{directory});
  CHECK(fs.ids("FS::File", tree.root) == std::vector{file});
  CHECK(fs.ids("FS::Symlink", tree.root) == std::vector{link});
  const auto uid = geteuid();
  const auto gid = getegid();
  CHECK(fs.properties("FS::Directory", directory) ==
        Json{{"path", directory}, {"mode", "1777"}, {"uid", uid}, {"gid", gid}});
  CHECK(fs.properties("FS::File", file) == Json{{"path", file},
                                                {"mode", "4750"},
                                                {"uid", uid},
                                                {"gid", gid},
                                                {"size", 3},
                                                {"mtime", "2023-11-14T22:13:20.000000005Z"}});
  CHECK(fs.properties("FS::Symlink", link) ==
        Json{{"path", link}, {"mode", "0777"}, {"uid", uid}, {"gid", gid}, {"target", "no/where"}});
  // What a list gives and what a read gives are the same.
  for (const auto& type : kTypes) {
    for (const auto& item : fs.list(type, tree.root).items)
      CHECK(std::get<Item>(fs.read(type, item.native_id)) == item);
  }
}

TEST_CASE("modes are four octal digits, times reach before 1970") {
  const Tree tree;
  const auto file = tree.file("f");
  const Fs fs(tree);
  for (const auto& [mode, text] : std::map<mode_t, std::string>{
           {0, "0000"}, {07, "0007"}, {0644, "0644"}, {02755, "2755"}, {04000, "4000"}, {07777, "7777"}}) {
    chmod(file.c_str(), mode);
    CHECK(fs.properties("FS::File", file)["mode"] == text);
  }
  const timespec times[2] = {{0, 0}, {-1, 999'999'999}};
  utimensat(AT_FDCWD, file.c_str(), times, 0);
  CHECK(fs.properties("FS::File", file)["mtime"] == "1969-12-31T23:59:59.999999999Z");
}

TEST_CASE("odd names come escaped where they must and can be read back") {
  const Tree tree;
  const std::map<std::string, std::string> names = {{" ", " "},
                                                    {"a b", "a b"},
                                                    {"new\nline", "new\nline"},
                                                    {"quote\"'\\", "quote\"'\\"},
                                                    {"%41", "%2541"},
                                                    {"100%", "100%"},
                                                    {"%zz", "%zz"},
                                                    {"\xff\xfe", "%FF%FE"},
                                                    {"a\xc3", "a%C3"},
                                                    {"grün", "grün"},
                                                    {"-rf", "-rf"},
                                                    {"*", "*"},
                                                    {"\x01\x7f", "\x01\x7f"},
                                                    {"...", "..."},
                                                    {std::string(255, 'x'), std::string(255, 'x')},
                                                    {std::string(255, '\xff'), [] {
                                                       std::string all;
                                                       for (int i = 0; i < 255; ++i) all += "%FF";
                                                       return all;
                                                     }()}};
  std::set<std::string> expected;
  for (const auto& [name, escaped] : names) {
    tree.file(name, name);
    expected.insert(tree / escaped);
  }
  const Fs fs(tree);
  for (const std::uint32_t size : {1U, 3U, 100U}) {
    const auto found = fs.ids("FS::File", tree.root, size);
    CHECK(found.size() == expected.size());
    CHECK(std::set(found.begin(), found.end()) == expected);
  }
  for (const auto& [name, escaped] : names) {
    const auto properties = fs.properties("FS::File", tree / escaped);
    CHECK(properties["path"] == tree / escaped);
    CHECK(properties["size"] == name.size());
  }
  CHECK(fs.read_error("FS::File", tree / "%61 b") == Errc::kInvalidRequest);  // not the escaped form of "a b"

  tree.directory("\xff%41");
  tree.file("\xff%41/in\xff");
  tree.link("l", "to\xff%41");
  CHECK(fs.ids("FS::File", tree / "%FF%2541") == std::vector{tree / "%FF%2541/in%FF"});
  CHECK(fs.properties("FS::Symlink", tree / "l")["target"] == "to%FF%2541");
}

TEST_CASE("pages give each id once, in order, whatever their size") {
  const Tree tree;
  std::vector<std::string> expected;
  for (int i = 100; i < 137; ++i) expected.push_back(tree.file("f" + std::to_string(i)));
  tree.directory("g");
  tree.link("a", "g");
  const Fs fs(tree);
  for (const std::uint32_t size : {1U, 2U, 36U, 37U, 38U, 100U, 0U}) {
    CHECK(fs.ids("FS::File", tree.root, size) == expected);
    CHECK(fs.ids("FS::Directory", tree.root, size) == std::vector{tree / "g"});
  }
  const auto page = std::get<ListResult>(fs.run("FS::File", ListJob{Parent{"FS::Directory", tree.root, "{}"}, "", 37}));
  CHECK(page.next_page_token.empty());  // a full last page says that it is the last
}

TEST_CASE("changes between pages neither repeat nor lose what stays") {
  const Tree tree;
  for (const auto* name : {"a", "b", "c", "d"}) tree.file(name);
  const Fs fs(tree);
  const Parent parent{"FS::Directory", tree.root, "{}"};
  const auto first = std::get<ListResult>(fs.run("FS::File", ListJob{parent, "", 2}));
  REQUIRE(first.items.size() == 2);
  unlink((tree / "b").c_str());  // the very one that the page token names
  tree.file("aa");
  tree.file("bb");
  const auto second = std::get<ListResult>(fs.run("FS::File", ListJob{parent, first.next_page_token, 10}));
  std::vector<std::string> ids;
  for (const auto& item : second.items) ids.push_back(item.native_id);
  CHECK(ids == std::vector{tree / "bb", tree / "c", tree / "d"});
}

TEST_CASE("links are never followed") {
  const Tree tree;
  const Tree outside;
  outside.directory("b");
  outside.file("b/secret");
  tree.directory("a/b");
  tree.link("loop", ".");
  tree.link("self", "self");
  tree.link("out", outside.root);
  tree.link("a/up", "..");
  const Fs fs(tree);
  CHECK(fs.ids("FS::Directory", tree.root) == std::vector{tree / "a"});
  CHECK(fs.ids("FS::Symlink", tree.root) == std::vector{tree / "loop", tree / "out", tree / "self"});
  for (const auto& id : {tree / "loop", tree / "out", tree / "out/b", tree / "loop/a", tree / "a/up/a"}) {
    CHECK(fs.list_error("FS::File", id).code == Errc::kNotFound);
    CHECK(fs.read_error("FS::Directory", id) == Errc::kNotFound);
  }
  CHECK(fs.read_error("FS::File", tree / "out/b/secret") == Errc::kNotFound);

  // A directory that was listed and has been swapped for a link since.
  stdfs::remove_all(tree / "a");
  tree.link("a", outside.root);
  CHECK(fs.list_error("FS::File", tree / "a/b").code == Errc::kNotFound);
  CHECK(fs.read_error("FS::File", tree / "a/b/secret") == Errc::kNotFound);
}

TEST_CASE("other file systems are listed and not entered") {
  struct stat root = {};
  struct stat proc = {};
  if (stat("/", &root) != 0 || stat("/proc/self", &proc) != 0 || root.st_dev == proc.st_dev) return;
  const Fs fs(Json{{"root", "/"}});
  const auto below = fs.ids("FS::Directory", "/");
  CHECK(std::count(below.begin(), below.end(), "/proc") == 1);
  for (const auto& id : below) CHECK(id.substr(0, 2) != "//");
  CHECK(std::holds_alternative<Item>(fs.read("FS::Directory", "/proc")));
  for (const auto& type : kTypes) CHECK(fs.list(type, "/proc").items.empty());
  CHECK(fs.read_error("FS::Symlink", "/proc/self") == Errc::kNotFound);
  CHECK(fs.list_error("FS::File", "/proc/sys").code == Errc::kNotFound);
  CHECK(Json::parse(testing::list_all(fs.plugin, "FS::Directory", fs.config).items.at(0).properties)["path"] == "/");
  CHECK(fs.ids("FS::Directory", "/proc").empty());
  // With the root over there, its own file system is the one that counts.
  CHECK(std::holds_alternative<Item>(Fs(Json{{"root", "/proc"}}).read("FS::Directory", "/proc/sys")));
}

TEST_CASE("what is mounted twice is listed in one place, and is there one object") {
  const Tree tree;
  tree.directory("a/d");
  tree.directory("there");
  tree.file("a/f");
  tree.file("g");
  const Fs fs(tree);
  // A thread's own mounts go with it.
  std::thread([&] {
    const bool mounted = unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount((tree / "a").c_str(), (tree / "there").c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                         mount((tree / "a/f").c_str(), (tree / "g").c_str(), nullptr, MS_BIND, nullptr) == 0;
    if (!mounted) {
      WARN("nothing may be mounted here: not tested");
      return;
    }
    CHECK(fs.ids("FS::Directory", tree.root) == std::vector<std::string>{tree / "a", tree / "there"});
    CHECK(fs.ids("FS::Directory", tree / "a") == std::vector<std::string>{tree / "a/d"});
    CHECK(fs.ids("FS::Directory", tree / "there").empty());
    CHECK(fs.ids("FS::File", tree / "there").empty());
    CHECK(fs.read_error("FS::File", tree / "there/f") == Errc::kNotFound);
    const auto uid = [&](const std::string& type, const std::string& id) {
      return std::get<Item>(fs.read(type, id)).uid;
    };
    CHECK(uid("FS::Directory", tree / "there") != uid("FS::Directory", tree / "a"));
    CHECK(uid("FS::File", tree / "g") != uid("FS::File", tree / "a/f"));
    // Of the root itself it is the mount that counts.
    CHECK(Fs(Json{{"root", tree / "there"}}).ids("FS::File", tree / "there") ==
          std::vector<std::string>{tree / "there/f"});
  }).join();
}

TEST_CASE("special files are counted, once") {
  const Tree tree;
  REQUIRE(mkfifo((tree / "pipe").c_str(), 0600) == 0);
  REQUIRE(mkfifo((tree / "zipe").c_str(), 0600) == 0);
  tree.file("a");
  tree.file("b");
  for (const bool hash : {false, true}) {
    const Fs fs(Json{{"root", tree.root}, {"hash", hash}});
    for (const std::uint32_t size : {1U, 100U}) {
      std::uint32_t skipped = 0;
      for (const auto& type : kTypes) skipped += fs.list(type, tree.root, size).skipped;
      CHECK(skipped == 2);
    }
    CHECK(fs.ids("FS::File", tree.root) == std::vector{tree / "a", tree / "b"});
    for (const auto& type : kTypes) CHECK(fs.read_error(type, tree / "pipe") == Errc::kNotFound);
  }
}

TEST_CASE("hash gives the SHA-256 of the content, in lists and reads") {
  const Tree tree;
  const std::map<std::string, std::string> expected = {
      {tree.file("abc", "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {tree.file("empty"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {tree.file("large", std::string(3'000'000, 'a')),
       "2a152c894398719c0570f83fac34ac03a0f6e8e474b995c2403aa5434f7b9dd4"}};
  const Fs fs(Json{{"root", tree.root}, {"hash", true}});
  const auto listed = fs.list("FS::File", tree.root);
  REQUIRE(listed.items.size() == expected.size());
  for (const auto& item : listed.items) {
    CHECK(Json::parse(item.properties)["sha256"] == expected.at(item.native_id));
    CHECK(std::get<Item>(fs.read("FS::File", item.native_id)) == item);
  }

  testing::FakeContext stopped;
  stopped.stop();
  const auto answer = fs.run("FS::File", ListJob{Parent{"FS::Directory", tree.root, "{}"}, "", 10}, stopped);
  CHECK(std::get<Error>(answer).code == Errc::kCancelled);
}

TEST_CASE("what may not be read is a problem, or skipped where the config says so") {
  const Tree tree;
  for (const auto* name : {"closed", "blind"})
    tree.file(std::string(tree.directory(name), tree.root.size() + 1) + "/f");
  tree.file("closed.txt", "x");
  chmod((tree / "closed").c_str(), 0);
  chmod((tree / "blind").c_str(), 0444);  // names can be seen, nothing behind them
  chmod((tree / "closed.txt").c_str(), 0);
  const WithoutPrivileges nobody;
  {
    const Fs fs(Json{{"root", tree.root}, {"hash", true}});
    for (const auto& type : kTypes) {
      CHECK(fs.list_error(type, tree / "closed").code == Errc::kAccessDenied);
      CHECK(fs.list_error(type, tree / "blind").code == Errc::kAccessDenied);
    }
    CHECK(fs.read_error("FS::File", tree / "closed/f") == Errc::kAccessDenied);
    CHECK(fs.read_error("FS::File", tree / "closed.txt") == Errc::kAccessDenied);
    const auto listed = fs.list("FS::File", tree.root);
    CHECK(listed.items.empty());
    REQUIRE(listed.problems.size() == 1);
    CHECK(listed.problems[0].native_id == tree / "closed.txt");
    CHECK(listed.problems[0].failure.code == Errc::kAccessDenied);
    CHECK(fs.ids("FS::Directory", tree.root) == std::vector{tree / "blind", tree / "closed"});
  }
  const Fs fs(Json{{"root", tree.root}, {"hash", true}, {"unreadable", "skip"}});
  for (const auto& type : kTypes) {
    for (const auto* name : {"closed", "blind"}) {
      const auto listed = fs.list(type, tree / name);
      CHECK(listed.items.empty());
      CHECK(listed.problems.empty());
    }
  }
  CHECK(fs.properties("FS::File", tree / "closed.txt")["size"] == 1);
  CHECK_FALSE(fs.properties("FS::File", tree / "closed.txt").contains("sha256"));
  CHECK(fs.ids("FS::File", tree.root) == std::vector{tree / "closed.txt"});
}

TEST_CASE("a uid survives a rename and tells hard links from renames") {
  const Tree tree;
  tree.file("a");
  tree.directory("d");
  const Fs fs(tree);
  const auto uid_of = [&](const std::string& type, const std::string& name) {
    return std::get<Item>(fs.read(type, tree / name)).uid;
  };
  const auto file = uid_of("FS::File", "a");
  const auto directory = uid_of("FS::Directory", "d");
  CHECK_FALSE(file.empty());
  CHECK(file != directory);
  stdfs::rename(tree / "a", tree / "b");
  stdfs::rename(tree / "d", tree / "e");
  CHECK(uid_of("FS::File", "b") == file);
  CHECK(uid_of("FS::Directory", "e") == directory);
  stdfs::create_hard_link(tree / "b", tree / "c");
  CHECK(uid_of("FS::File", "b").empty());
  CHECK(uid_of("FS::File", "c").empty());
}

TEST_CASE("paths beyond PATH_MAX work, up to the length of a native id") {
  const Tree tree;
  const std::string name(250, 'd');
  int here = open(tree.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int depth = 0; depth < 70; ++depth) {
    REQUIRE(mkdirat(here, name.c_str(), 0755) == 0);
    const int next = openat(here, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(here);
    here = next;
  }
  close(here);

  const Fs fs(tree);
  auto parent = tree.root;
  auto listed = fs.list("FS::Directory", parent);
  while (!listed.items.empty()) {
    REQUIRE(listed.items.size() == 1);
    parent = listed.items[0].native_id;
    REQUIRE(std::get<Item>(fs.read("FS::Directory", parent)).properties == listed.items[0].properties);
    listed = fs.list("FS::Directory", parent);
  }
  CHECK(parent.size() > 4 * PATH_MAX - 500);
  REQUIRE(listed.problems.size() == 1);
  CHECK(listed.problems[0].failure.code == Errc::kLimit);
}

TEST_CASE("what is gone, of another type or outside of the root") {
  const Tree tree;
  tree.file("f");
  tree.directory("d");
  const Fs fs(tree);
  CHECK(fs.read_error("FS::Directory", tree / "f") == Errc::kNotFound);
  CHECK(fs.read_error("FS::File", tree / "d") == Errc::kNotFound);
  CHECK(fs.read_error("FS::Symlink", tree / "f") == Errc::kNotFound);
  CHECK(fs.read_error("FS::File", tree.root) == Errc::kNotFound);
  CHECK(fs.read_error("FS::File", tree / "gone") == Errc::kNotFound);
  CHECK(fs.read_error("FS::File", tree / "f/below") == Errc::kNotFound);
  CHECK(fs.list_error("FS::File", tree / "gone").code == Errc::kNotFound);
  CHECK(fs.list_error("FS::File", tree / "f").code == Errc::kNotFound);
  for (const auto& id : {std::string("relative"), std::string("/"), tree / "", tree / "d/../f", tree / "./f",
                         tree / "d//f", tree / "f%00"}) {
    CHECK(fs.read_error("FS::File", id) == Errc::kInvalidRequest);
    CHECK(fs.list_error("FS::File", id).code == Errc::kInvalidRequest);
  }
  for (const auto& id : {tree.root + "x", std::string("/etc/passwd")}) {  // the target may have had another root
    CHECK(fs.read_error("FS::File", id) == Errc::kNotFound);
    CHECK(fs.list_error("FS::File", id).code == Errc::kInvalidRequest);
  }
  const auto answers = testing::read_all(fs.plugin, "FS::File", fs.config, {tree / "gone", tree / "f", "/etc/passwd"});
  REQUIRE(answers.size() == 3);
  CHECK(std::get<Error>(answers[0]).code == Errc::kNotFound);
  CHECK(std::get<Item>(answers[1]).native_id == tree / "f");
  CHECK(std::get<Error>(answers[2]).code == Errc::kNotFound);
}

TEST_CASE("a root that cannot be listed says why") {
  const Tree tree;
  tree.file("f");
  tree.link("l", ".");
  const auto code = [](const Json& config) {
    const Fs fs(config);
    return std::get<Error>(fs.run("FS::Directory", ListJob{})).code;
  };
  CHECK(code({{"root", tree / "gone"}}) == Errc::kNotFound);
  // Which doesn't mean that all that stood below is gone.
  CHECK(Fs(Json{{"root", tree / "gone"}}).read_error("FS::File", tree / "gone/f") == Errc::kInvalidRequest);
  CHECK(Fs(Json{{"root", tree / "gone"}}).list_error("FS::File", tree / "gone").code == Errc::kInvalidRequest);
  CHECK(code({{"root", tree / "f"}}) == Errc::kInvalidRequest);
  CHECK(code({{"root", tree / "l"}}) == Errc::kInvalidRequest);
}

TEST_CASE("mistakes in the config name the key") {
  const std::vector<std::pair<Json, std::string>> mistakes = {
      {Json::object(), "config.root"},
      {{{"root", "relative"}}, "config.root"},
      {{{"root", ""}}, "config.root"},
      {{{"root", 1}}, "config.root"},
      {{{"root", "/a/../b"}}, "config.root"},
      {{{"root", "/a//b"}}, "config.root"},
      {{{"root", std::string("/a\0b", 4)}}, "config.root"},
      {{{"root", "/"}, {"hash", "yes"}}, "config.hash"},
      {{{"root", "/"}, {"unreadable", "ignore"}}, "config.unreadable"},
      {{{"root", "/"}, {"unreadable", 1}}, "config.unreadable"},
      {{{"root", "/"}, {"depth", 1}}, "config.depth"},
  };
  for (const auto& [config, key] : mistakes) {
    const Fs fs(config);
    for (const JobOperation& operation : {JobOperation(ListJob{}), JobOperation(InspectJob{})}) {
      const auto error = std::get<Error>(fs.run("FS::Directory", operation));
      CHECK(error.code == Errc::kInvalidRequest);
      CHECK(error.message.find(key) == 0);
    }
    CHECK(fs.read_error("FS::File", "/x") == Errc::kInvalidRequest);
  }
}

TEST_CASE("the system is the machine and the root") {
  const auto system = [](const std::string& root) {
    const Fs fs(Json{{"root", root}});
    return std::get<InspectResult>(fs.run("", InspectJob{})).system;
  };
  CHECK(system("/srv") == system("/srv/"));
  CHECK(system("/srv") != system("/"));
  CHECK(system("/srv").find(":/srv") != std::string::npos);
  CHECK(system("/srv").find(":/srv") > 0);
  const Tree tree;
  CHECK(system(tree.root).ends_with(":" + tree.root));
  struct statx proc = {};
  REQUIRE(statx(AT_FDCWD, "/proc", AT_SYMLINK_NOFOLLOW, 0, &proc) == 0);
  if ((proc.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0) return;  // this kernel does not say
  CHECK(system("/proc").ends_with(":/proc (mounted)"));
}
