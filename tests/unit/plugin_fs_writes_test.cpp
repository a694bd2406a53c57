#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "plugins/fs/fs.h"
#include "support/scratch.h"
#include "worker_sdk/testing/fake_context.h"

namespace stdfs = std::filesystem;
using namespace muster;

namespace {

/// The errno with which a file system refuses to sync its directories; 0: it does not.
int directory_sync_error = 0;

}  // namespace

/// Takes the place of the system's, for the plugin in this executable too.
int fsync(int descriptor) {
  struct stat status {};
  const bool directory = fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
  if (!directory || directory_sync_error == 0) return static_cast<int>(syscall(SYS_fsync, descriptor));
  errno = directory_sync_error;
  return -1;
}

namespace {

/// A directory of its own, gone at the end, and the plugin that manages it.
struct Fs {
  test::Scratch scratch;
  const std::string root = scratch.path;
  Plugin plugin{fs::plugin_info()};
  Json config;

  explicit Fs(Json more = Json::object()) : config(std::move(more)) {
    config["root"] = root;
    fs::add_types(plugin);
  }

  std::string operator/(const std::string& name) const { return root + "/" + name; }

  [[nodiscard]] JobResult run(const std::string& type, JobOperation operation) const {
    testing::FakeContext context;
    Job job;
    job.ns = "FS";
    job.type = type;
    job.operation = std::move(operation);
    return plugin.run(job, config, context);
  }
  [[nodiscard]] JobResult create(const std::string& type, const Json& properties, const std::string& key = "k") const {
    return run(type, CreateJob{key, {properties.dump(), {}}, std::nullopt});
  }
  [[nodiscard]] JobResult update(const std::string& type, const Json& desired, const Precondition& precondition = {},
                                 const std::string& key = "u") const {
    return run(type, UpdateJob{key, desired["path"], "{}", {desired.dump(), {}}, "[]", precondition});
  }
  [[nodiscard]] JobResult remove(const std::string& type, const std::string& id,
                                 const Precondition& precondition = {}) const {
    return run(type, DeleteJob{"d", id, precondition});
  }
  [[nodiscard]] ReadItem read(const std::string& type, const std::string& id) const {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }
  [[nodiscard]] std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : stdfs::directory_iterator(root)) names.insert(entry.path().filename());
    return names;
  }
};

Item done(const JobResult& result) {
  if (const auto* error = std::get_if<Error>(&result)) throw std::runtime_error(error->message);
  auto answer = std::get<MutationResult>(result);
  return {answer.native_id, answer.uid, answer.properties};
}

Errc code(const JobResult& result) {
  const auto* error = std::get_if<Error>(&result);
  return error == nullptr ? Errc{0} : error->code;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

unsigned mode(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) throw std::runtime_error(path);
  return status.st_mode & 07777U;
}

constexpr const char* kFile = "FS::File";
constexpr const char* kDirectory = "FS::Directory";
constexpr const char* kLink = "FS::Symlink";

}  // namespace

TEST_CASE("files, directories and links are made as declared") {
  const Fs fs;
  const auto directory = done(fs.create(kDirectory, {{"path", fs / "www"}, {"mode", "2750"}}));
  CHECK(directory.native_id == fs / "www");
  CHECK(mode(fs / "www") == 02750);
  CHECK(std::get<Item>(fs.read(kDirectory, fs / "www")) == directory);

  const auto file = done(fs.create(kFile, {{"path", fs / "www/a"}, {"mode", "0604"}, {"content", "text\n"}}));
  CHECK(content(fs / "www/a") == "text\n");
  CHECK(mode(fs / "www/a") == 0604);
  CHECK(std::get<Item>(fs.read(kFile, fs / "www/a")) == file);
  CHECK_FALSE(Json::parse(file.properties).contains("content"));

  const auto link = done(fs.create(kLink, {{"path", fs / "www/l"}, {"target", "../%FF"}}));
  CHECK(stdfs::read_symlink(fs / "www/l") == "../\xff");
  CHECK(std::get<Item>(fs.read(kLink, fs / "www/l")) == link);

  // Whatever the process masks.
  const auto mask = umask(077);
  done(fs.create(kDirectory, {{"path", fs / "d"}}));
  done(fs.create(kFile, {{"path", fs / "f"}}));
  umask(mask);
  CHECK(mode(fs / "d") == 0755);
  CHECK(mode(fs / "f") == 0644);
  CHECK(content(fs / "f").empty());
  CHECK(fs.entries() == std::set<std::string>{"d", "f", "www"});
}

TEST_CASE("owners are set before a file is there") {
  if (geteuid() != 0) return;  // only root gives files away
  const Fs fs;
  const auto owner = [](const Item& item) {
    const auto properties = Json::parse(item.properties);
    return std::pair(properties["uid"].get<int>(), properties["gid"].get<int>());
  };
  CHECK(owner(done(fs.create(kFile, {{"path", fs / "f"}, {"uid", 123}, {"gid", 456}, {"mode", "4755"}}))) ==
        std::pair(123, 456));
  CHECK(mode(fs / "f") == 04755);
  CHECK(owner(done(fs.create(kDirectory, {{"path", fs / "d"}, {"uid", 123}}))) == std::pair(123, 0));
  CHECK(owner(done(fs.create(kLink, {{"path", fs / "l"}, {"target", "x"}, {"gid", 456}}))) == std::pair(0, 456));
  // Another content, the same owner and mode.
  CHECK(owner(done(fs.update(kFile, {{"path", fs / "f"}, {"content", "x"}}))) == std::pair(123, 456));
  CHECK(mode(fs / "f") == 04755);
  CHECK(owner(done(fs.update(kFile, {{"path", fs / "f"}, {"uid", 7}}))) == std::pair(7, 456));
  CHECK(mode(fs / "f") == 04755);
  CHECK(owner(done(fs.update(kLink, {{"path", fs / "l"}, {"target", "y"}}))) == std::pair(0, 456));
  CHECK(owner(done(fs.update(kLink, {{"path", fs / "l"}, {"target", "y"}, {"uid", 9}}))) == std::pair(9, 456));
}

TEST_CASE("what exists is not overwritten; the same key finds what it made") {
  const Fs fs;
  const std::vector<std::pair<const char*, Json>> objects = {
      {kDirectory, {{"path", fs / "d"}}},
      {kFile, {{"path", fs / "f"}, {"content", "mine"}}},
      {kLink, {{"path", fs / "l"}, {"target", "here"}}},
  };
  for (const auto& [type, properties] : objects) {
    const auto made = done(fs.create(type, properties, "key"));
    CHECK(done(fs.create(type, properties, "key")) == made);
    for (const auto& [other, unused] : objects) {
      if (other != type) {
        const Json same_place = {{"path", properties["path"]}, {"target", "x"}};
        // Nothing of this type is there that could be adopted.
        CHECK(code(fs.create(other, other == kLink ? same_place : Json{{"path", properties["path"]}}, "key")) ==
              Errc::kInvalidRequest);
      }
    }
  }
  CHECK(code(fs.create(kDirectory, {{"path", fs / "d"}}, "other")) == Errc::kAlreadyExists);
  CHECK(code(fs.create(kFile, {{"path", fs / "f"}, {"content", "other"}}, "other")) == Errc::kAlreadyExists);
  CHECK(code(fs.create(kLink, {{"path", fs / "l"}, {"target", "there"}}, "other")) == Errc::kAlreadyExists);
  CHECK(content(fs / "f") == "mine");
  CHECK(stdfs::read_symlink(fs / "l") == "here");
  CHECK(fs.entries() == std::set<std::string>{"d", "f", "l"});

  // Another content does not hide whose it is.
  done(fs.update(kFile, {{"path", fs / "f"}, {"content", "changed"}}));
  CHECK(done(fs.create(kFile, {{"path", fs / "f"}, {"content", "mine"}}, "key")).native_id == fs / "f");
  CHECK(content(fs / "f") == "changed");
}

TEST_CASE("nobody sees a file before it is whole") {
  const Fs fs;
  const std::string whole(20'000, 'x');
  std::atomic<int> seen = 0, halves = 0;
  std::jthread looking([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (int i = 0; i < 20; ++i) {
        struct stat status {};
        if (stat((fs / std::to_string(i)).c_str(), &status) != 0) continue;
        ++seen;
        const bool is_whole = static_cast<std::size_t>(status.st_size) >= whole.size();
        if (!is_whole || (status.st_mode & 07777U) != 0640) ++halves;
      }
    }
  });
  for (int i = 0; i < 20; ++i) {
    const auto path = fs / std::to_string(i);
    done(fs.create(kFile, {{"path", path}, {"content", whole}, {"mode", "0640"}}));
    done(fs.update(kFile, {{"path", path}, {"content", whole + "y"}}));
  }
  while (seen == 0) std::this_thread::yield();
  looking.request_stop();
  looking.join();
  CHECK(halves == 0);
}

TEST_CASE("content that cannot be written leaves nothing, and what was there") {
  const Fs fs;
  done(fs.create(kFile, {{"path", fs / "f"}, {"content", "old"}}));
  const auto child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string large(5000, 'x');
    const bool as_wanted = code(fs.create(kFile, {{"path", fs / "g"}, {"content", large}})) == Errc::kLimit &&
                           code(fs.update(kFile, {{"path", fs / "f"}, {"content", large}})) == Errc::kLimit;
    _exit(as_wanted ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(content(fs / "f") == "old");
  CHECK(fs.entries() == std::set<std::string>{"f"});
}

TEST_CASE("a file system that cannot sync a directory is written to all the same") {
  const Fs fs;
  directory_sync_error = EINVAL;
  const auto made = {fs.create(kDirectory, {{"path", fs / "d"}}), fs.create(kFile, {{"path", fs / "f"}}),
                     fs.create(kLink, {{"path", fs / "l"}, {"target", "f"}})};
  const auto changed = fs.update(kFile, {{"path", fs / "f"}, {"content", "new"}});
  const auto removed = fs.remove(kLink, fs / "l");
  directory_sync_error = 0;
  for (const auto& result : made) CHECK(code(result) == Errc{0});
  CHECK(code(changed) == Errc{0});
  CHECK(code(removed) == Errc{0});
  CHECK(fs.entries() == std::set<std::string>{"d", "f"});
}

TEST_CASE("of what is done and perhaps not durable nobody says that it was not done") {
  const Fs fs;
  done(fs.create(kFile, {{"path", fs / "old"}}));
  directory_sync_error = GENERATE(ENOSPC, EROFS, EIO);
  const auto made = {fs.create(kFile, {{"path", fs / "f"}}), fs.create(kLink, {{"path", fs / "l"}, {"target", "f"}})};
  const auto changed = fs.update(kFile, {{"path", fs / "old"}, {"content", "new"}});
  const auto removed = fs.remove(kFile, fs / "f");
  directory_sync_error = 0;
  for (const auto& result : made) CHECK(code(result) == Errc::kNotStabilized);
  CHECK(code(changed) == Errc::kNotStabilized);
  CHECK(code(removed) == Errc::kNotStabilized);
  CHECK(content(fs / "old") == "new");
  CHECK(fs.entries() == std::set<std::string>{"l", "old"});
}

TEST_CASE("an update changes what is declared, and no more") {
  const Fs fs;
  const auto before = done(fs.create(kFile, {{"path", fs / "f"}, {"content", "old"}}));
  const auto chmodded = done(fs.update(kFile, {{"path", fs / "f"}, {"mode", "0600"}, {"content", "old"}}));
  CHECK(mode(fs / "f") == 0600);
  CHECK(chmodded.uid == before.uid);  // the same file still: its content was not written again
  CHECK(Json::parse(chmodded.properties)["mtime"] == Json::parse(before.properties)["mtime"]);
  const auto rewritten = done(fs.update(kFile, {{"path", fs / "f"}, {"content", "new"}}));
  CHECK(content(fs / "f") == "new");
  CHECK(mode(fs / "f") == 0600);
  CHECK(std::get<Item>(fs.read(kFile, fs / "f")) == rewritten);

  done(fs.create(kLink, {{"path", fs / "l"}, {"target", "a"}}));
  const auto moved = done(fs.update(kLink, {{"path", fs / "l"}, {"target", "b"}, {"mode", "0777"}}));
  CHECK(Json::parse(moved.properties)["target"] == "b");
  done(fs.create(kDirectory, {{"path", fs / "d"}}));
  done(fs.update(kDirectory, {{"path", fs / "d"}, {"mode", "1777"}}));
  CHECK(mode(fs / "d") == 01777);
  CHECK(code(fs.update(kFile, {{"path", fs / "gone"}, {"mode", "0600"}})) == Errc::kNotFound);
  CHECK(code(fs.update(kFile, {{"path", fs / "d"}, {"mode", "0600"}})) == Errc::kNotFound);
  CHECK(fs.entries() == std::set<std::string>{"d", "f", "l"});
}

TEST_CASE("what is declared as absent is as it would be of a new object, or refused") {
  const Fs fs;
  for (const auto& [type, name, usual] : {std::tuple(kFile, "f", 0644U), std::tuple(kDirectory, "d", 0755U)}) {
    const auto path = fs / name;
    const auto made = done(fs.create(type, {{"path", path}, {"mode", nullptr}}));
    CHECK(mode(path) == usual);
    REQUIRE(chmod(path.c_str(), 0700) == 0);
    const auto there = std::get<Item>(fs.read(type, path));
    auto desired = Json::parse(there.properties);
    desired.erase("mode");  // as a coordinator puts a null over what is there
    const auto changed = done(fs.run(type, UpdateJob{"u", path, there.properties, {desired.dump(), {}}, "[]", {}}));
    CHECK(mode(path) == usual);
    CHECK(changed.uid == made.uid);
    for (const char* owner : {"uid", "gid"}) {
      desired = Json::parse(there.properties);
      desired.erase(owner);  // there is none, so it would be missed for ever
      CHECK(code(fs.run(type, UpdateJob{"u", path, there.properties, {desired.dump(), {}}, "[]", {}})) ==
            Errc::kInvalidRequest);
      CHECK(code(fs.create(type, {{"path", fs / "other"}, {owner, nullptr}})) == Errc::kInvalidRequest);
    }
  }
  CHECK(fs.entries() == std::set<std::string>{"d", "f"});
}

TEST_CASE("a precondition protects what somebody else changed") {
  const Fs fs;
  const auto made = done(fs.create(kFile, {{"path", fs / "f"}, {"content", "old"}}));
  const Json desired = {{"path", fs / "f"}, {"content", "new"}, {"mode", "0600"}};
  stdfs::remove(fs / "f");
  std::ofstream(fs / "f") << "someone's";
  const Precondition same_object{made.uid, ""};
  CHECK(code(fs.update(kFile, desired, same_object)) == Errc::kConflict);
  CHECK(code(fs.remove(kFile, fs / "f", same_object)) == Errc::kConflict);
  CHECK(code(fs.remove(kFile, fs / "f", {"", std::string(32, '0')})) == Errc::kConflict);
  CHECK(content(fs / "f") == "someone's");

  // The same change again, after its answer was lost: what the precondition says is over.
  const auto present = std::get<Item>(fs.read(kFile, fs / "f"));
  const auto changed = done(fs.update(kFile, desired, {present.uid, ""}));
  CHECK(done(fs.update(kFile, desired, {present.uid, ""})) == changed);
}

TEST_CASE("a deletion takes one object and never what is in it") {
  const Fs fs;
  done(fs.create(kDirectory, {{"path", fs / "d"}}));
  const auto file = done(fs.create(kFile, {{"path", fs / "d/f"}}));
  const auto refused = fs.remove(kDirectory, fs / "d");
  CHECK(code(refused) == Errc::kConflict);
  CHECK(std::get<Error>(refused).message.find("not empty") != std::string::npos);
  CHECK(done(fs.remove(kFile, fs / "d/f", {file.uid, ""})).native_id == fs / "d/f");
  CHECK(done(fs.remove(kFile, fs / "d/f")).properties.empty());
  CHECK(done(fs.remove(kDirectory, fs / "d/f")).properties.empty());
  done(fs.remove(kDirectory, fs / "d"));
  CHECK(done(fs.remove(kFile, fs / "d/f")).properties.empty());
  CHECK(fs.entries().empty());

  done(fs.create(kDirectory, {{"path", fs / "kept"}}));
  done(fs.create(kLink, {{"path", fs / "l"}, {"target", "kept"}}));
  done(fs.remove(kDirectory, fs / "l"));  // no directory: nothing to delete
  done(fs.remove(kLink, fs / "l"));
  CHECK(fs.entries() == std::set<std::string>{"kept"});
}

TEST_CASE("nothing is changed outside of the root, nor through a link") {
  const Fs outside, fs;
  done(outside.create(kFile, {{"path", outside / "f"}, {"content", "untouched"}}));
  stdfs::create_directory_symlink(outside.root, fs / "way");
  stdfs::create_symlink(outside / "f", fs / "l");
  const std::vector<std::string> paths = {outside / "new", fs / "way/new", fs / "../new", fs / "./new", fs / "d//new",
                                          fs / "gone/new", "new",          fs.root,       "/",          ""};
  for (const auto& path : paths) {
    INFO(path);
    CHECK(code(fs.create(kFile, {{"path", path}})) == Errc::kInvalidRequest);
    CHECK(code(fs.create(kDirectory, {{"path", path}})) == Errc::kInvalidRequest);
    CHECK(code(fs.create(kLink, {{"path", path}, {"target", "x"}})) == Errc::kInvalidRequest);
  }
  CHECK(code(fs.update(kFile, {{"path", fs / "way/f"}, {"content", "x"}})) == Errc::kNotFound);
  CHECK(code(fs.update(kFile, {{"path", fs / "l"}, {"content", "x"}})) == Errc::kNotFound);
  CHECK(code(fs.update(kFile, {{"path", outside / "f"}, {"content", "x"}})) == Errc::kInvalidRequest);
  CHECK(code(fs.create(kFile, {{"path", fs / "l"}, {"content", "x"}})) == Errc::kInvalidRequest);
  done(fs.remove(kFile, fs / "way/f"));
  CHECK(code(fs.remove(kFile, outside / "f")) == Errc::kInvalidRequest);
  CHECK(code(fs.remove(kDirectory, fs.root)) == Errc::kInvalidRequest);
  CHECK(code(fs.update(kDirectory, {{"path", fs.root}, {"mode", "0777"}})) == Errc::kInvalidRequest);
  CHECK(content(outside / "f") == "untouched");
  CHECK(outside.entries() == std::set<std::string>{"f"});
}

TEST_CASE("a directory that is swapped for a link all the time is never left") {
  const Fs outside, fs;
  stdfs::create_directory(fs / "d");
  stdfs::create_directory_symlink(outside.root, fs / "other");
  std::jthread swapping([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      renameat2(AT_FDCWD, (fs / "d").c_str(), AT_FDCWD, (fs / "other").c_str(), RENAME_EXCHANGE);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto path = fs / "d/" + std::to_string(i);
    static_cast<void>(fs.create(kFile, {{"path", path}}));
    static_cast<void>(fs.update(kFile, {{"path", path}, {"content", "x"}}));
  }
  swapping.request_stop();
  swapping.join();
  CHECK(outside.entries().empty());
}

TEST_CASE("names that are not UTF-8 keep their bytes") {
  const Fs fs;
  const auto file = done(fs.create(kFile, {{"path", fs / "%FF%2541"}, {"content", "x"}}));
  CHECK(file.native_id == fs / "%FF%2541");
  CHECK(content(fs / "\xff%41") == "x");
  CHECK(std::get<Item>(fs.read(kFile, file.native_id)) == file);
  done(fs.update(kFile, {{"path", file.native_id}, {"content", "y"}}));
  CHECK(content(fs / "\xff%41") == "y");
  done(fs.remove(kFile, file.native_id));
  CHECK(fs.entries().empty());
  CHECK(code(fs.create(kFile, {{"path", fs / "%41"}})) == Errc::kInvalidRequest);  // an A that hides
  CHECK(code(fs.create(kFile, {{"path", fs / "a%00b"}})) == Errc::kInvalidRequest);
  CHECK(code(fs.create(kFile, {{"path", fs / std::string(300, 'x')}})) == Errc::kInvalidRequest);
}

TEST_CASE("what no object can be is refused, and names the property") {
  const Fs fs;
  const std::vector<std::tuple<const char*, Json, std::string>> mistakes = {
      {kFile, Json::object(), "properties.path"},
      {kFile, {{"path", 1}}, "properties.path"},
      {kFile, {{"path", fs / "f"}, {"mode", "644"}}, "properties.mode"},
      {kFile, {{"path", fs / "f"}, {"mode", 420}}, "properties.mode"},
      {kFile, {{"path", fs / "f"}, {"mode", "0888"}}, "properties.mode"},
      {kFile, {{"path", fs / "f"}, {"uid", -1}}, "properties.uid"},
      {kFile, {{"path", fs / "f"}, {"gid", 4294967295U}}, "properties.gid"},
      {kFile, {{"path", fs / "f"}, {"gid", "root"}}, "properties.gid"},
      {kFile, {{"path", fs / "f"}, {"content", 1}}, "properties.content"},
      {kFile, {{"path", fs / "f"}, {"size", 1}}, "properties.size"},
      {kFile, {{"path", fs / "f"}, {"target", "x"}}, "properties.target"},
      {kDirectory, {{"path", fs / "f"}, {"content", "x"}}, "properties.content"},
      {kLink, {{"path", fs / "f"}}, "properties.target"},
      {kLink, {{"path", fs / "f"}, {"target", ""}}, "properties.target"},
      {kLink, {{"path", fs / "f"}, {"target", "a%00"}}, "properties.target"},
      {kLink, {{"path", fs / "f"}, {"target", "a%20b"}}, "properties.target"},  // is read back as `a b`
      {kLink, {{"path", fs / "f"}, {"target", "%ff"}}, "properties.target"},
      {kLink, {{"path", fs / "f"}, {"target", "x"}, {"mode", "0777"}}, "properties.mode"},
  };
  for (const auto& [type, properties, key] : mistakes) {
    const auto result = fs.create(type, properties);
    CHECK(code(result) == Errc::kInvalidRequest);
    CHECK(std::get<Error>(result).message.find(key) == 0);
  }
  CHECK(fs.entries().empty());
}

TEST_CASE("what no native id can name is not made") {
  const Fs fs;
  std::string parent = fs.root;
  while (parent.size() + 202 < kMaxNativeIdBytes) {
    parent += "/" + std::string(200, 'd');
    REQUIRE(code(fs.create(kDirectory, {{"path", parent}})) == Errc{0});
  }
  const auto longest = parent + "/" + std::string(kMaxNativeIdBytes - parent.size() - 1, 'f');
  CHECK(code(fs.create(kFile, {{"path", longest}})) == Errc{0});
  const auto refused = fs.create(kFile, {{"path", parent + "/" + std::string(255, 'f')}});
  CHECK(code(refused) == Errc::kLimit);
  const auto listed = testing::list_all(fs.plugin, kFile, fs.config, Parent{kDirectory, parent, "{}"});
  CHECK(listed.problems.empty());
  CHECK(listed.items.size() == 1);
}

TEST_CASE("what a killed worker left is nobody's, and goes") {
  const Fs fs;
  const auto leave = [](const std::string& path, std::time_t age) {
    std::ofstream(path) << "half";
    const std::timespec then{std::time(nullptr) - age, 0};
    const std::timespec times[] = {then, then};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
  };
  leave(fs / ".muster-draft-0123", 3600);
  leave(fs / ".muster-draft-4567", 0);
  CHECK(testing::list_all(fs.plugin, kFile, fs.config, Parent{kDirectory, fs.root, "{}"}).items.empty());
  CHECK(std::get<Error>(fs.read(kFile, fs / ".muster-draft-4567")).code == Errc::kNotFound);
  CHECK(code(fs.create(kFile, {{"path", fs / ".muster-draft-x"}})) == Errc::kInvalidRequest);
  done(fs.create(kDirectory, {{"path", fs / "d"}}));
  CHECK(fs.entries() == std::set<std::string>{".muster-draft-4567", "d"});  // somebody may be at work on that one

  leave(fs / "d/.muster-draft-0123", 3600);
  leave(fs / "d/.muster-draft-4567", 60);
  const int held = open((fs / "d/.muster-draft-4567").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(flock(held, LOCK_EX | LOCK_NB) == 0);
  CHECK(code(fs.remove(kDirectory, fs / "d")) == Errc::kServiceUnavailable);  // somebody is at work on one
  std::ofstream(fs / "d/f") << "made";
  CHECK(code(fs.remove(kDirectory, fs / "d")) == Errc::kConflict);
  std::filesystem::remove(fs / "d/f");
  close(held);
  done(fs.remove(kDirectory, fs / "d"));
}

TEST_CASE("a link that was half made is nobody's as soon as its worker is gone") {
  const Fs fs;
  done(fs.create(kDirectory, {{"path", fs / "d"}}));
  const std::string draft = fs / "d/.muster-draft-0123";
  REQUIRE(mkdir(draft.c_str(), 0700) == 0);
  REQUIRE(symlink("there", (draft + "/link").c_str()) == 0);
  const std::timespec times[] = {{std::time(nullptr) - 60, 0}, {std::time(nullptr) - 60, 0}};
  REQUIRE(utimensat(AT_FDCWD, draft.c_str(), times, 0) == 0);
  CHECK(testing::list_all(fs.plugin, kLink, fs.config, Parent{kDirectory, fs / "d", "{}"}).items.empty());
  done(fs.remove(kDirectory, fs / "d"));
  CHECK(fs.entries().empty());
}

TEST_CASE("a mode that the system keeps otherwise is not called done") {
  if (geteuid() != 0) return;
  const Fs fs;
  done(fs.create(kDirectory, {{"path", fs / "d"}, {"mode", "2777"}, {"gid", 12345}}));
  chmod(fs.root.c_str(), 0755);
  REQUIRE(seteuid(65534) == 0);  // who is not in the group of a file gets it no set-group-id bit, and no error
  const auto made = fs.create(kFile, {{"path", fs / "d/f"}, {"mode", "2755"}});
  const auto changed = fs.update(kFile, {{"path", fs / "d/f"}, {"mode", "2750"}});
  const auto same = fs.update(kFile, {{"path", fs / "d/f"}, {"mode", "0700"}});
  REQUIRE(seteuid(0) == 0);
  CHECK(code(made) == Errc::kNotStabilized);
  CHECK(code(changed) == Errc::kNotStabilized);
  CHECK(std::get<Error>(changed).message == fs / "d/f: the system does not keep its mode or owner as declared");
  CHECK(code(same) == Errc{0});
}

TEST_CASE("a worker without permission says so") {
  if (geteuid() != 0) return;
  const Fs fs;
  done(fs.create(kFile, {{"path", fs / "f"}, {"content", "x"}}));
  chmod(fs.root.c_str(), 0755);
  REQUIRE(seteuid(65534) == 0);
  const auto made = code(fs.create(kFile, {{"path", fs / "g"}}));
  const auto changed = code(fs.update(kFile, {{"path", fs / "f"}, {"mode", "0600"}}));
  const auto removed = code(fs.remove(kFile, fs / "f"));
  REQUIRE(seteuid(0) == 0);
  CHECK(made == Errc::kAccessDenied);
  CHECK(changed == Errc::kAccessDenied);
  CHECK(removed == Errc::kAccessDenied);
}
