#include "notes.h"

#include <unistd.h>
#include <worker_sdk/testing/fake_context.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace {

struct Notes {
  std::filesystem::path directory;
  muster::Json config;
  muster::Plugin plugin{{.name = "notes", .ns = "NOTES", .version = "1.0.0"}};

  Notes() {
    std::string pattern = (std::filesystem::temp_directory_path() / "notes-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
    config = {{"directory", directory.string()}};
    add_notes(plugin);
  }
  ~Notes() { std::filesystem::remove_all(directory); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(directory / name) << text; }
};

}  // namespace

TEST_CASE("notes are listed and read") {
  const Notes notes;
  notes.write("shopping", "milk");
  const auto listed = muster::testing::list_all(notes.plugin, "NOTES::Note", notes.config);
  REQUIRE(listed.items.size() == 1);
  CHECK(listed.items[0].native_id == "shopping");
  const auto read = muster::testing::read_all(notes.plugin, "NOTES::Note", notes.config, {"shopping", "gone"});
  CHECK(std::get<muster::Item>(read[0]).properties == R"({"name":"shopping","text":"milk"})");
  CHECK(std::get<muster::Error>(read[1]).code == muster::Errc::kNotFound);
}

TEST_CASE("a function is called directly, too") {
  const Notes notes;
  muster::testing::FakeContext context;
  const muster::ReadRequest request{{"t", "target", notes.config}, "NOTES::Note", "gone"};
  CHECK(read_note(request, context).error().code == muster::Errc::kNotFound);
}

TEST_CASE("the manifest holds together") {
  CHECK(Notes().plugin.manifest().types.size() == 1);
}
