// guide: test
#include "notes.h"

#include <unistd.h>
#include <worker_sdk/testing/fake_context.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace {

/// The plugin, and a directory for it.
struct Notes {
  fs::path directory;
  muster::Json config;
  muster::Plugin plugin{notes_info()};

  Notes() {
    std::string pattern = (fs::temp_directory_path() / "notes-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
    config = {{"directory", directory.string()}};
    add_notes(plugin);
    add_todos(plugin);
    add_life(plugin);
  }
  ~Notes() { fs::remove_all(directory); }
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
// end: test

// guide: change-test
TEST_CASE("notes are created, changed and deleted, each once") {
  const Notes notes;
  const auto change = [&](const muster::JobOperation& operation) {
    return muster::testing::change(notes.plugin, "NOTES::Note", notes.config, operation);
  };
  const muster::CreateJob create{"key-1", {R"({"name":"home","text":"sweep"})", {}}, {}};
  CHECK(change(create).value().native_id == "home");
  CHECK(change(create).error().code == muster::Errc::kAlreadyExists);

  const muster::JsonText prior = R"({"name":"home","text":"sweep"})", desired = R"({"name":"home","text":"dust"})";
  const muster::JsonText patch = R"([{"op":"replace","path":"/text","value":"dust"}])";
  const muster::Precondition another_state{"", std::string(32, '0')};
  const muster::UpdateJob update{"key-2", "home", prior, {desired, {}}, patch, {}};
  CHECK(change(muster::UpdateJob{"key-2", "home", prior, {desired, {}}, patch, another_state}).error().code ==
        muster::Errc::kConflict);
  CHECK(change(update).value().properties == desired);

  CHECK(change(muster::DeleteJob{"key-3", "home", another_state}).error().code == muster::Errc::kConflict);
  CHECK(change(muster::DeleteJob{"key-3", "home", {}}));
  CHECK(change(muster::DeleteJob{"key-3", "home", {}}));  // what is not there is deleted
  CHECK(change(update).error().code == muster::Errc::kNotFound);
  CHECK(fs::is_empty(notes.directory));
}
// end: change-test

TEST_CASE("nothing outside of the directory is made a note, and no draft is left") {
  const Notes notes;
  notes.write("home", "sweep");
  const auto create = [&](const std::string& name) {
    const muster::Json properties{{"name", name}, {"text", "dust"}};
    return muster::testing::change(notes.plugin, "NOTES::Note", notes.config,
                                   muster::CreateJob{"key", {properties.dump(), {}}, {}});
  };
  for (const char* name : {"../home", "a/b", "..", ".", ""}) {
    CHECK(create(name).error().code == muster::Errc::kInvalidRequest);
  }
  CHECK(create("home").error().code == muster::Errc::kAlreadyExists);
  CHECK(std::distance(fs::directory_iterator(notes.directory), {}) == 1);
}

TEST_CASE("what another worker is writing, or has left, is no note and is left alone") {
  const Notes notes;
  notes.write("home", "sweep");
  notes.write(".draft-home", "another's");
  fs::create_hard_link(notes.directory / "home", notes.directory / ".draft-1-2");  // killed before it went
  const auto change = [&](const muster::JobOperation& operation) {
    return muster::testing::change(notes.plugin, "NOTES::Note", notes.config, operation);
  };
  const muster::JsonText desired = R"({"name":"home","text":"dust"})";
  const muster::Precondition another_state{"", std::string(32, '0')};
  CHECK(change(muster::CreateJob{"key", {desired, {}}, {}}).error().code == muster::Errc::kAlreadyExists);
  const muster::UpdateJob update{"key", "home", "{}", {desired, {}}, "[]", another_state};
  CHECK(change(update).error().code == muster::Errc::kConflict);
  const muster::JsonText draft = R"({"name":".draft-home","text":"dust"})";
  CHECK(change(muster::CreateJob{"key", {draft, {}}, {}}).error().code == muster::Errc::kInvalidRequest);
  CHECK(change(muster::DeleteJob{"key", ".draft-home", {}}));  // what is no note is not there

  const auto listed = muster::testing::list_all(notes.plugin, "NOTES::Note", notes.config);
  CHECK(listed.items.size() == 1);
  const auto read = muster::testing::read_all(notes.plugin, "NOTES::Note", notes.config, {"home", ".draft-home"});
  CHECK(std::get<muster::Item>(read[0]).properties == R"({"name":"home","text":"sweep"})");
  CHECK(std::get<muster::Error>(read[1]).code == muster::Errc::kNotFound);
  CHECK(std::distance(fs::directory_iterator(notes.directory), {}) == 3);
}

TEST_CASE("what is declared is spelled as it is read, and a note has one id") {
  const Notes notes;
  const auto create = [&](const std::string& name, const std::string& text) {
    const muster::Json declared{{"name", name}, {"text", text}};
    return muster::testing::change(notes.plugin, "NOTES::Note", notes.config,
                                   muster::CreateJob{"key", {declared.dump(), {}}, {}});
  };
  CHECK(create("a%20b", "x").error().code == muster::Errc::kInvalidRequest);  // a space that hides
  CHECK(create("link", "q=a%20b").error().code == muster::Errc::kInvalidRequest);
  CHECK(fs::is_empty(notes.directory));
  CHECK(create("a b%2520", "q=a%2520b, 100%").value().native_id == "a b%2520");
  CHECK(muster::testing::list_all(notes.plugin, "NOTES::Note", notes.config).items.at(0).native_id == "a b%2520");
  const auto read = muster::testing::read_all(notes.plugin, "NOTES::Note", notes.config, {"a b%2520", "a%20b%2520"});
  CHECK(std::get<muster::Item>(read[0]).properties == R"({"name":"a b%2520","text":"q=a%2520b, 100%"})");
  CHECK(std::get<muster::Error>(read[1]).code == muster::Errc::kNotFound);
}

TEST_CASE("nothing outside of the directory is a note") {
  const Notes notes;
  for (const auto& answer :
       muster::testing::read_all(notes.plugin, "NOTES::Note", notes.config, {"../etc/passwd", "/etc/passwd", ".."})) {
    CHECK(std::get<muster::Error>(answer).code == muster::Errc::kNotFound);
  }
}

TEST_CASE("many notes come in pages, each once") {
  const Notes notes;
  for (int i = 0; i < 25; ++i) notes.write("note-" + std::to_string(i), "");
  const auto listed = muster::testing::list_all(notes.plugin, "NOTES::Note", notes.config, {}, 10);
  CHECK(listed.items.size() == 25);
}

TEST_CASE("todos are found in their note") {
  const Notes notes;
  notes.write("home", "[ ] sweep\nsome text\n[x] dust\n[ ] dust\n");
  const muster::Parent home{"NOTES::Note", "home", R"({"note":"home"})"};
  const auto listed = muster::testing::list_all(notes.plugin, "NOTES::Todo", notes.config, home, 1);
  REQUIRE(listed.items.size() == 2);
  CHECK(listed.items[0].native_id == "home/dust");
  CHECK(listed.items[0].properties == R"({"done":true,"note":"home","what":"dust"})");
  const auto read = muster::testing::read_all(notes.plugin, "NOTES::Todo", notes.config, {"home/sweep", "home/fly"});
  CHECK(std::get<muster::Item>(read[0]).properties == R"({"done":false,"note":"home","what":"sweep"})");
  CHECK(std::get<muster::Error>(read[1]).code == muster::Errc::kNotFound);
}

// guide: life-test
TEST_CASE("a shelf is opened by its key, and ill while it is not there") {
  const Notes notes;
  notes.write(".key", "open sesame");
  muster::testing::FakeInitializeContext start;
  start.variables["NOTES_ROOT"] = notes.directory.string();
  CHECK(notes.plugin.run_initialize(start).error().code == muster::Errc::kAccessDenied);
  start.credentials["NOTES_KEY"] = "open sesame";
  CHECK(notes.plugin.run_initialize(start));

  muster::testing::FakeContext context;
  CHECK(notes.plugin.run_health(context));
  fs::remove(notes.directory / ".key");
  CHECK_FALSE(notes.plugin.run_health(context));
  CHECK(notes.plugin.run_cleanup(context));
  CHECK(context.logged() == "info closed\n");
}
// end: life-test

// guide: async-test
TEST_CASE("a shelf that is far away keeps no thread busy") {
  using namespace std::chrono_literals;
  muster::Plugin plugin({.name = "far", .ns = "FAR", .version = "0.1.0"});
  plugin.type({.name = "FAR::Note"}).read_many_async([](const muster::AsyncReadMany& call) {
    call.after(20ms, [call] {  // or from where a client with callbacks calls back
      std::vector<muster::Result<muster::Resource>> answers;
      for (const auto& id : call.request().native_ids) {
        answers.emplace_back(muster::Resource{id, muster::Properties{{"text", "milk"}}, ""});
      }
      call.answer(std::move(answers));
    });
  });
  CHECK(muster::testing::read_all(plugin, "FAR::Note", muster::Json::object(), {"a", "b"}).size() == 2);
}
// end: async-test

TEST_CASE("the manifest holds together") {
  CHECK(Notes().plugin.manifest().types.size() == 2);
}
