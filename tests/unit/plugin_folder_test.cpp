#include "coordinator/cli/plugin_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "coordinator/cli/checksums.h"
#include "support/scratch.h"

using namespace muster;
using namespace muster::cli;
namespace fs = std::filesystem;

namespace {

const std::string kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // SHA-256 of "abc"

struct Folder : test::Scratch {
  void put(const std::string& name, const std::string& text, fs::perms mode = fs::perms::owner_all) const {
    std::ofstream(path / name) << text;
    fs::permissions(path / name, mode);
  }
  /// `name refusal` of each plugin.
  static std::vector<std::string> tell(PluginFolder& folder) {
    std::vector<std::string> lines;
    const auto listing = folder.read();
    REQUIRE(listing);
    for (const PluginFile& file : listing->files) {
      lines.push_back(file.name + (file.refusal.empty() ? "" : ": " + file.refusal));
      CHECK(file.verified == (file.refusal.empty() && fs::exists(fs::path(file.path).parent_path() / kChecksums)));
    }
    return lines;
  }
};
using Lines = std::vector<std::string>;

bool unchanged(const PluginFile& file) {
  Recheck check(file);
  while (!check.unchanged()) check.read_on(1);
  return *check.unchanged();
}

/// Names of what is not read yet.
Lines pending(PluginFolder& folder) {
  Lines names;
  const auto listing = folder.look();
  REQUIRE(listing);
  for (const PluginFile& file : listing->files) {
    if (!file.pending) continue;
    names.push_back(file.name);
    CHECK(file.version.empty());
    CHECK(file.refusal.empty());
    CHECK_FALSE(file.verified);
  }
  return names;
}

}  // namespace

TEST_CASE("a list of checksums is what sha256sum writes") {
  const auto sums = parse_checksums(kAbc + "  a\n" + kAbc + " *./b c\r\n\n# by hand\n" + kAbc + "  a");
  REQUIRE(sums);
  CHECK(*sums == Checksums{{"a", kAbc}, {"b c", kAbc}});
  std::string upper = kAbc;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  CHECK(parse_checksums(upper + "  a").value().at("a") == kAbc);
  CHECK(parse_checksums("").value().empty());

  const std::string other = std::string(63, '0') + "1";
  for (const std::string& bad : {kAbc, kAbc + "  ", kAbc + " a", kAbc.substr(1) + "   a", "x" + kAbc.substr(1) + "  a",
                                 "\\" + kAbc + "  a", kAbc + "  a\n" + other + "  a"}) {
    CAPTURE(bad);
    const auto refused = parse_checksums("# first\n" + bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("SHA256SUMS:") == 0);
  }
  CHECK(parse_checksums("\n\nrubbish").error().message.find("SHA256SUMS:3: ") == 0);
}

TEST_CASE("every executable of a folder is a plugin but what is hidden, a checksum or on its way") {
  const Folder folder;
  for (const char* name : {"muster-plugin-a", "b", ".hidden", ".b.swp", "b~", "b.new", "b.tmp", "b.part", "b.sha256",
                           "#b#", "SHA256SUMS.tmp"}) {
    folder.put(name, "abc");
  }
  folder.put("README", "abc", fs::perms::owner_read);
  fs::create_directory(folder.path / "folder");
  fs::create_symlink("b", folder.path / "link");
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK(Folder::tell(reader) == Lines{"b", "link", "muster-plugin-a"});
  CHECK(plugin_name("muster-plugin-a") == "a");
  CHECK(plugin_name("b") == "b");
  CHECK(reader.read()->files[0].version == kAbc);
}

TEST_CASE("a folder is read anew") {
  const Folder folder;
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK(Folder::tell(reader).empty());
  folder.put("a", "abc");
  const auto before = reader.read()->files.at(0);
  CHECK(before.version == kAbc);
  CHECK(reader.read()->files.at(0).file == before.file);  // nothing is read twice
  folder.put("a.new", "abcd");
  fs::rename(folder.path / "a.new", folder.path / "a");
  CHECK(reader.read()->files.at(0).version != kAbc);
  CHECK_FALSE(before.file->touched());  // what was read is still that
  folder.put("a", "abcde");
  CHECK(reader.read()->files.at(0).version.size() == 64);
  fs::remove(folder.path / "a");
  CHECK(Folder::tell(reader).empty());
  fs::remove_all(folder.path);
  CHECK_FALSE(reader.read());
}

TEST_CASE("a folder is read in portions, what takes least first") {
  const Folder folder;
  folder.put("a", std::string(1000, 'x'));
  folder.put("b", "abc");
  folder.put("c", "");
  folder.put("SHA256SUMS", kAbc + "  b\n", fs::perms::owner_read);
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK_FALSE(reader.reads());
  CHECK(pending(reader) == Lines{"a", "b", "c"});
  CHECK(reader.reads());
  CHECK(reader.read_on(1));
  CHECK(pending(reader) == Lines{"a", "b"});
  CHECK(reader.read_on(10));
  CHECK(pending(reader) == Lines{"a"});
  CHECK(reader.look()->files.at(1).version == kAbc);
  CHECK(reader.look()->files.at(1).verified);
  CHECK(reader.reads("a"));
  CHECK_FALSE(reader.reads("b"));
  int portions = 0;
  while (!reader.read_on(10)) ++portions;
  CHECK(portions >= 98);
  CHECK_FALSE(reader.reads());
  CHECK(pending(reader).empty());
  CHECK(reader.look()->files.at(0).refusal == "it is not listed in SHA256SUMS");
}

TEST_CASE("the sum of a file that changes while it is read is not told") {
  const Folder folder;
  folder.put("a", std::string(1000, 'x'));
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK(pending(reader) == Lines{"a"});
  CHECK_FALSE(reader.read_on(500));
  SECTION("another takes its name") {
    folder.put("a.new", "abc");
    fs::rename(folder.path / "a.new", folder.path / "a");
  }
  SECTION("it is written to") {
    folder.put("a", "abc");
    SECTION("and its time is set back") {
      fs::last_write_time(folder.path / "a", fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  SECTION("it is noticed while it is read") {
    folder.put("a", "abc");
    CHECK(pending(reader) == Lines{"a"});
    CHECK(reader.read_on(500));
    CHECK(reader.look()->files.at(0).version == kAbc);
    return;
  }
  CHECK_FALSE(reader.read_on(5000));
  CHECK_FALSE(reader.reads());  // what there is to read is known by the next look
  CHECK(pending(reader) == Lines{"a"});
  CHECK(reader.read_on(5000));
  CHECK(reader.look()->files.at(0).version == kAbc);
}

TEST_CASE("a file that is to be read and goes is forgotten") {
  const Folder folder;
  folder.put("a", "abc");
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK(pending(reader) == Lines{"a"});
  fs::remove(folder.path / "a");
  CHECK(pending(reader).empty());
  CHECK_FALSE(reader.reads());
  CHECK_FALSE(reader.read_on(5000));
}

TEST_CASE("a sum is the same in any portions") {
  const Folder folder;
  folder.put("a", std::string(1 << 20, 'x') + "abc");
  const OpenFile file(open((folder.path / "a").c_str(), O_RDONLY));
  const auto whole = sha256_of(file.descriptor(), 2 << 20);
  REQUIRE(whole);
  for (const std::uint64_t portion : {4099, 1 << 18, 1 << 20, 1 << 21}) {
    FileSum sum(file.descriptor(), 2 << 20);
    CHECK(sum.left() == (1 << 20) + 3);
    std::uint64_t read = 0;
    while (!sum.result()) {
      const auto count = sum.read_on(portion);
      CHECK(count <= portion);
      read += count;
    }
    CHECK(read == (1 << 20) + 3);
    CHECK(sum.left() == 0);
    CHECK(sum.read_on(portion) == 0);
    CHECK(**sum.result() == *whole);
  }
  FileSum sum(file.descriptor(), 1 << 20);
  while (!sum.result()) sum.read_on(1 << 18);
  CHECK(sum.result()->error().code == Errc::kLimit);
}

TEST_CASE("an open file knows when it was written to") {
  const Folder folder;
  folder.put("a", "abc");
  const OpenFile file(open((folder.path / "a").c_str(), O_RDONLY));
  CHECK(sha256_of(file.descriptor(), 3).value() == kAbc);
  CHECK(sha256_of(file.descriptor(), 2).error().code == Errc::kLimit);
  CHECK_FALSE(file.touched());
  CHECK(file.lies_at(folder.path / "a"));
  folder.put("b", "abc");
  CHECK_FALSE(file.lies_at(folder.path / "b"));
  CHECK_FALSE(file.lies_at(folder.path / "c"));
  folder.put("a", "abd ");
  CHECK(file.touched());
}

TEST_CASE("checksums decide what may be started") {
  const Folder folder;
  folder.put("a", "abc");
  folder.put("b", "other");
  folder.put("c", "abc");
  folder.put("SHA256SUMS", kAbc + "  a\n" + kAbc + "  b\n", fs::perms::owner_read);
  for (const Verify verify : {Verify::kIfListed, Verify::kRequired}) {
    PluginFolder reader(folder.path, verify);
    CHECK(Folder::tell(reader) ==
          Lines{"a", "b: its checksum is not the one in SHA256SUMS", "c: it is not listed in SHA256SUMS"});
    CHECK(reader.read()->fault.empty());
  }
}

TEST_CASE("nothing may be started where checksums are required and missing, or not to be understood") {
  const Folder folder;
  folder.put("a", "abc");
  PluginFolder reader(folder.path, Verify::kRequired);
  CHECK(reader.read()->fault.find("checksums are required") == 0);
  CHECK_FALSE(reader.read()->files.at(0).refusal.empty());
  PluginFolder lenient(folder.path, Verify::kIfListed);
  CHECK(lenient.read()->fault.empty());
  folder.put("SHA256SUMS", "rubbish\n", fs::perms::owner_read);
  CHECK(lenient.read()->fault.find("SHA256SUMS:1: ") == 0);
  CHECK_FALSE(lenient.read()->files.at(0).refusal.empty());
}

TEST_CASE("a list of checksums that is not a file of its own is none that is missing") {
  const Folder folder;
  folder.put("a", "abc");
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK(reader.read()->fault.empty());
  const auto list = folder.path / kChecksums;
  const auto fault = [&] {
    const auto listing = reader.read();
    CHECK(listing->files.at(0).refusal == listing->fault);
    return listing->fault;
  };
  SECTION("a link to nothing") {
    fs::create_symlink("nowhere", list);
    CHECK(fault() == "SHA256SUMS is a link, and must be a regular file");
  }
  SECTION("a link to a list") {
    folder.put("list", kAbc + "  a\n", fs::perms::owner_read);
    fs::create_symlink("list", list);
    CHECK(fault() == "SHA256SUMS is a link, and must be a regular file");
  }
  SECTION("a folder") {
    fs::create_directory(list);
    CHECK(fault() == "SHA256SUMS is no regular file");
  }
  SECTION("a pipe") {
    REQUIRE(mkfifo(list.c_str(), 0600) == 0);
    CHECK(fault() == "SHA256SUMS is no regular file");
  }
  SECTION("larger than any") {
    folder.put("SHA256SUMS", std::string(kMaxChecksumBytes + 1, '#'), fs::perms::owner_all);
    CHECK(fault() == "SHA256SUMS is larger than 1 MiB");
  }
}

TEST_CASE("a name that leads nowhere is no plugin, one that cannot be looked at is told") {
  const Folder folder;
  fs::create_symlink("nowhere", folder.path / "a");
  fs::create_symlink("b", folder.path / "b");
  PluginFolder reader(folder.path, Verify::kIfListed);
  CHECK(Folder::tell(reader) == Lines{"b: it cannot be looked at: Too many levels of symbolic links"});
  folder.put("c", "abc");
  CHECK(reader.read()->files.at(1).refusal.empty());
}

TEST_CASE("nothing is started that everybody can write") {
  const Folder folder;
  folder.put("a", "abc", fs::perms::owner_all | fs::perms::group_write);
  folder.put("b", "abc", fs::perms::owner_all | fs::perms::others_write);
  PluginFolder reader(folder.path, Verify::kIfListed);
  const auto refusal = [&](const char* name) {
    return " can be written by everybody: `chmod o-w " + (folder.path / name).string() + "`";
  };
  CHECK(Folder::tell(reader) == Lines{"a", "b: it" + refusal("b")});

  chmod(folder.path.c_str(), 0777);
  CHECK(reader.read()->fault == "the folder can be written by everybody: `chmod o-w " + folder.path.string() + "`");
  CHECK(reader.read()->files.at(0).refusal == reader.read()->fault);
  chmod(folder.path.c_str(), 01777);  // where nobody can replace what is another's
  CHECK(reader.read()->fault.empty());

  folder.put("SHA256SUMS", kAbc + "  a\n" + kAbc + "  b\n", fs::perms::owner_all | fs::perms::others_write);
  CHECK(reader.read()->fault == "SHA256SUMS" + refusal("SHA256SUMS"));
  chmod((folder.path / "SHA256SUMS").c_str(), 0664);
  chmod((folder.path / "b").c_str(), 0775);
  CHECK(Folder::tell(reader) == Lines{"a", "b"});
}

TEST_CASE("nothing is started that belongs to another user than root and who runs it") {
  if (geteuid() != 0) return;  // only root can give files away
  constexpr uid_t kNobody = 65534;
  const Folder folder;
  for (const char* name : {"a", "b", "target"}) folder.put(name, "abc");
  fs::create_symlink("a", folder.path / "link");
  PluginFolder reader(folder.path, Verify::kIfListed);
  const auto refusal = [&](const fs::path& path, const std::string& command = "chown") {
    return " belongs to user 65534, neither root nor the one that runs this: `" + command + " root " + path.string() +
           "`";
  };
  const auto give_away = [](const fs::path& path) { REQUIRE(lchown(path.c_str(), kNobody, kNobody) == 0); };
  give_away(folder.path / "b");
  give_away(folder.path / "link");
  CHECK(Folder::tell(reader) == Lines{"a", "b: it" + refusal(folder.path / "b"),
                                      "link: it" + refusal(folder.path / "link", "chown -h"), "target"});
  folder.put("SHA256SUMS", kAbc + "  a\n", fs::perms::owner_read);
  give_away(folder.path / "SHA256SUMS");
  CHECK(reader.read()->fault == "SHA256SUMS" + refusal(folder.path / "SHA256SUMS"));
  give_away(folder.path);
  CHECK(reader.read()->fault == "the folder" + refusal(folder.path));
}

TEST_CASE("what was verified is not started when it is other than that, whatever its times say") {
  const Folder folder;
  folder.put("a", "abc");
  folder.put("SHA256SUMS", kAbc + "  a\n", fs::perms::owner_read);
  PluginFolder reader(folder.path, Verify::kIfListed);
  const auto file = reader.read()->files.at(0);
  REQUIRE(file.verified);
  CHECK(unchanged(file));
  const auto written = fs::last_write_time(file.path);
  Recheck check(file);
  check.read_on(2);
  CHECK_FALSE(check.unchanged().has_value());
  folder.put("a", "xbc");  // what was read of it already
  fs::last_write_time(file.path, written);
  while (!check.unchanged()) check.read_on(1);
  CHECK_FALSE(*check.unchanged());
  folder.put("a", "abd");
  fs::last_write_time(file.path, written);
  CHECK_FALSE(unchanged(file));
  CHECK(Folder::tell(reader) == Lines{"a: its checksum is not the one in SHA256SUMS"});
}
