#include <catch2/catch.hpp>

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "support/scratch.h"
#include "worker_sdk/src/journal.h"

using namespace muster;
namespace fs = std::filesystem;

namespace {

constexpr Journal::Room kRoom{1000, 64 * 1024 * 1024};

bool any(const Bytes&) {
  return true;
}

/// A state directory of a pool, and workers that come and go.
struct Place {
  test::Scratch scratch;
  std::ostringstream lines;
  std::shared_ptr<spdlog::logger> log =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(lines));

  [[nodiscard]] fs::path pool() const { return scratch.path / "state" / "muster" / "TH" / "default"; }
  std::unique_ptr<FileJournal> open(const std::string& worker) const {
    return std::move(FileJournal::open(pool(), WorkerId(worker), log).value());
  }
  [[nodiscard]] fs::path file(const std::string& worker, const std::string& token) const {
    return pool() / worker / (token + ".result");
  }
  [[nodiscard]] std::size_t workers() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(pool()), {}));
  }
};

void keep(Journal& journal, const std::string& token, const Bytes& reply) {
  journal.begin(Token(token)).value();
  journal.finish(Token(token), reply).value();
}

/// What comes of `act` while no file can be written beyond its first 4 KiB.
template <typename Act>
auto on_full_disk(Act act) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const struct rlimit small { 4096, limit.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  auto result = act();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::signal(SIGXFSZ, before);
  return result;
}

std::string slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a result is reserved before and kept after, and forgotten when it is removed") {
  Place place;
  const auto journal = place.open("w1");
  journal->begin(Token("t")).value();
  CHECK(fs::file_size(place.file("w1", "t")) >= 310 * 1024);
  struct stat status {};
  REQUIRE(::stat(place.file("w1", "t").c_str(), &status) == 0);
  CHECK(static_cast<std::size_t>(status.st_blocks) * 512 >= fs::file_size(place.file("w1", "t")));  // not sparse
  journal->finish(Token("t"), "what came of it").value();
  CHECK(fs::file_size(place.file("w1", "t")) < 100);
  journal->remove(Token("t"));
  CHECK_FALSE(fs::exists(place.file("w1", "t")));
  journal->remove(Token("t"));
  CHECK(place.lines.str().empty());
}

TEST_CASE("what was removed before it was done has no result") {
  Place place;
  const auto journal = place.open("w1");
  journal->begin(Token("t")).value();
  journal->remove(Token("t"));
  CHECK_FALSE(journal->finish(Token("t"), "result"));
  CHECK_FALSE(fs::exists(place.file("w1", "t")));
}

TEST_CASE("only its owner can look into a journal") {
  Place place;
  const auto journal = place.open("w1");
  journal->begin(Token("t")).value();
  for (fs::path path = place.pool() / "w1"; path != place.scratch.path; path = path.parent_path()) {
    CHECK((fs::status(path).permissions() & fs::perms(0777)) == fs::perms(0700));
  }
  CHECK((fs::status(place.file("w1", "t")).permissions() & fs::perms(0777)) == fs::perms(0600));
}

TEST_CASE("a journal that was emptied leaves nothing behind") {
  Place place;
  {
    const auto journal = place.open("w1");
    keep(*journal, "t", "result");
    journal->remove(Token("t"));
    CHECK(place.workers() == 1);
  }
  CHECK(place.workers() == 0);
}

TEST_CASE("results of a worker that has died are taken over, whole") {
  Place place;
  const Bytes large = std::string(300 * 1024, '\0') + "end";
  {
    const auto journal = place.open("w1");
    keep(*journal, "small", "");
    keep(*journal, "large", large);
    journal->begin(Token("begun")).value();
  }
  REQUIRE(place.workers() == 1);
  const auto journal = place.open("w2");
  auto kept = journal->take_over(kRoom, any);
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].token == Token("large"));
  CHECK(kept[0].reply == large);
  CHECK(kept[1].token == Token("small"));
  CHECK(kept[1].reply.empty());
  CHECK_THAT(place.lines.str(), Catch::Contains("token=begun worker=w1 died before this change had a result"));
  CHECK(place.workers() == 1);
  CHECK(journal->take_over(kRoom, any).empty());
  CHECK(fs::exists(place.file("w2", "small")));
  journal->remove(Token("small"));
  CHECK_FALSE(fs::exists(place.file("w2", "small")));
}

TEST_CASE("of what a worker that has died left only that is taken over which is wanted") {
  Place place;
  {
    const auto journal = place.open("w1");
    for (const char* token : {"a", "b", "c"}) keep(*journal, token, token);
  }
  const auto kept = place.open("w2")->take_over(kRoom, [](const Bytes& reply) { return reply != "b"; });
  CHECK(kept.size() == 2);
  CHECK(fs::exists(place.file("w1", "b")));
  const auto others = place.open("w3")->take_over(kRoom, [](const Bytes& reply) { return reply == "b"; });
  REQUIRE(others.size() == 1);
  CHECK(others.front().reply == "b");
}

TEST_CASE("what one that took over left is taken over again") {
  Place place;
  keep(*place.open("w1"), "t", "result");
  CHECK(place.open("w2")->take_over(kRoom, any).size() == 1);
  const auto kept = place.open("w3")->take_over(kRoom, any);
  REQUIRE(kept.size() == 1);
  CHECK(kept.front().reply == "result");
}

TEST_CASE("a worker that was given the id of one that has died takes over what that one left") {
  Place place;
  {
    const auto journal = place.open("w1");
    keep(*journal, "t1", "result");
    keep(*journal, "t2", "another");
    journal->begin(Token("begun")).value();
  }
  const auto journal = place.open("w1");
  keep(*journal, "own", "of this process");
  auto kept = journal->take_over({1, kRoom.bytes}, any);
  REQUIRE(kept.size() == 1);
  for (auto& more : journal->take_over(kRoom, any)) kept.push_back(std::move(more));
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].token == Token("t1"));
  CHECK(kept[0].reply == "result");
  CHECK(kept[1].token == Token("t2"));
  CHECK(journal->take_over(kRoom, any).empty());
  CHECK_THAT(place.lines.str(), Catch::Contains("token=begun worker=w1 died before this change had a result"));
  CHECK_FALSE(fs::exists(place.file("w1", "begun")));
  CHECK(fs::exists(place.file("w1", "own")));
}

TEST_CASE("workers of one pool that live leave each other alone") {
  Place place;
  const auto one = place.open("w1");
  auto two = place.open("w2");
  keep(*one, "a", "of one");
  keep(*two, "b", "of two");
  CHECK(one->take_over(kRoom, any).empty());
  CHECK(two->take_over(kRoom, any).empty());
  two.reset();
  const auto kept = one->take_over(kRoom, any);
  REQUIRE(kept.size() == 1);
  CHECK(kept.front().token == Token("b"));
  CHECK(place.workers() == 1);
}

TEST_CASE("of two workers one takes over") {
  Place place;
  keep(*place.open("dead"), "t", "result");
  const auto one = place.open("w1"), two = place.open("w2");
  CHECK(one->take_over(kRoom, any).size() + two->take_over(kRoom, any).size() == 1);
}

TEST_CASE("no more is taken over than there is room for, the rest is left") {
  Place place;
  {
    const auto journal = place.open("dead");
    for (const char* token : {"a", "b", "c"}) keep(*journal, token, std::string(1000, 'x'));
  }
  const auto journal = place.open("w1");
  CHECK(journal->take_over({0, 10'000}, any).empty());
  CHECK(journal->take_over({1, 10'000}, any).size() == 1);
  CHECK(journal->take_over({10, 1999}, any).size() == 1);
  CHECK(journal->take_over({10, 1999}, any).size() == 1);
  CHECK(place.workers() == 1);
}

TEST_CASE("a result that is not whole is no result") {
  Place place;
  {
    const auto journal = place.open("dead");
    keep(*journal, "t", "what came of it");
  }
  const fs::path path = place.file("dead", "t");
  std::string bytes = slurp(path);
  SECTION("cut at any place") {
    const auto length = GENERATE(range(0, 47));
    bytes.resize(static_cast<std::size_t>(length));
  }
  SECTION("any byte damaged") {
    bytes[static_cast<std::size_t>(GENERATE(range(0, 47)))] ^= 0x55;
  }
  SECTION("zeros, as what is reserved") {
    bytes.assign(4096, '\0');
  }
  REQUIRE(slurp(path).size() == 47);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  CHECK(place.open("w1")->take_over(kRoom, any).empty());
  CHECK(place.workers() == 0);
  CHECK_THAT(place.lines.str(), Catch::Contains("token=t worker=dead"));
}

TEST_CASE("a result is whole also where the worker died before it gave back what was reserved") {
  Place place;
  {
    const auto journal = place.open("dead");
    keep(*journal, "t", "what came of it");
  }
  fs::resize_file(place.file("dead", "t"), 320 * 1024);
  const auto kept = place.open("w1")->take_over(kRoom, any);
  REQUIRE(kept.size() == 1);
  CHECK(kept.front().reply == "what came of it");
}

TEST_CASE("what workers leave that die while they start is cleaned up; what is not theirs is left alone") {
  Place place;
  const auto journal = place.open("w1");
  fs::create_directory(place.pool() / "no-lock");
  fs::create_directory(place.pool() / "foreign");
  std::ofstream(place.pool() / "foreign" / "something");
  std::ofstream(place.pool() / "a-file");
  CHECK(journal->take_over(kRoom, any).empty());
  CHECK_FALSE(fs::exists(place.pool() / "no-lock"));
  CHECK(fs::exists(place.pool() / "foreign" / "something"));
  CHECK(fs::exists(place.pool() / "a-file"));
}

TEST_CASE("a journal that cannot be opened says where") {
  Place place;
  std::ofstream(place.scratch.path / "state");  // a file where a directory belongs
  const auto journal = FileJournal::open(place.pool(), WorkerId("w1"), place.log);
  REQUIRE_FALSE(journal);
  CHECK_THAT(journal.error().message, Catch::Contains((place.scratch.path / "state").string() + ":"));
}

TEST_CASE("a journal that cannot be locked says where") {
  Place place;
  const auto lock = place.pool() / "w1" / "lock";
  std::unique_ptr<FileJournal> other;
  SECTION("another has it") {
    other = place.open("w1");
  }
  SECTION("it is no file") {
    fs::create_directories(lock);
  }
  const auto journal = FileJournal::open(place.pool(), WorkerId("w1"), place.log);
  REQUIRE_FALSE(journal);
  CHECK_THAT(journal.error().message, Catch::Contains(lock.string()));
}

TEST_CASE("a result that cannot be read stays, and so does all that lies beside it") {
  Place place;
  {
    const auto journal = place.open("dead");
    keep(*journal, "t", "result");
  }
  const auto unreadable = place.file("dead", "a");
  fs::create_symlink("nowhere", unreadable);
  const auto journal = place.open("w1");
  const auto kept = journal->take_over(kRoom, any).size();  // whichever comes first
  CHECK_THAT(place.lines.str(), Catch::Contains("cannot take over") && Catch::Contains(unreadable.string()));
  CHECK(fs::is_symlink(unreadable));
  fs::remove(unreadable);
  CHECK(kept + journal->take_over(kRoom, any).size() == 1);
  CHECK(place.workers() == 1);
}

TEST_CASE("what finds no room is not begun, and leaves nothing") {
  Place place;
  const auto journal = place.open("w1");
  SECTION("the disk is full") {
    REQUIRE_FALSE(on_full_disk([&] { return journal->begin(Token("t")); }));
  }
  SECTION("the directory is gone") {
    fs::remove_all(place.pool());
    REQUIRE_FALSE(journal->begin(Token("t")));
  }
  SECTION("a token that would be a path") {
    for (const char* token : {"../t", "a/b", "", "."}) REQUIRE_FALSE(journal->begin(Token(token)));
    REQUIRE_FALSE(journal->begin(Token((place.scratch.path / "t").string())));
    CHECK_FALSE(fs::exists(place.scratch.path / "t.result"));
  }
  CHECK_FALSE(fs::exists(place.file("w1", "t")));
  CHECK_FALSE(journal->finish(Token("t"), "result"));
}

TEST_CASE("a result that is written in part is not said to be kept") {
  Place place;
  const auto journal = place.open("w1");
  journal->begin(Token("t")).value();
  const auto kept = on_full_disk([&] { return journal->finish(Token("t"), std::string(6000, 'x')); });
  REQUIRE_FALSE(kept);
  CHECK_THAT(kept.error().message, Catch::Contains(place.file("w1", "t").string()));
}

TEST_CASE("one token is begun once") {
  Place place;
  const auto journal = place.open("w1");
  keep(*journal, "t", "result");
  CHECK_FALSE(journal->begin(Token("t")));
  CHECK(slurp(place.file("w1", "t")).ends_with("result"));
  CHECK(journal->begin(Token("lock")));  // is not the lock
}
