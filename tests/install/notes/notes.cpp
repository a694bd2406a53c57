#include "notes.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

muster::PluginInfo notes_info() {
  const muster::PropertyMatch hidden{.path = "$.name", .op = muster::MatchOp::kRegex, .value = R"("^\\.")"};
  return {.name = "notes",
          .ns = "NOTES",
          .version = "1.0.0",
          .description = "Text files in a directory",
          .max_requests_per_second = 100,
          .label_query = "$.name",
          .filters = {{.types = {"NOTES::Note"}, .conditions = {hidden}, .action = muster::FilterAction::kExclude}},
          .config_schema = R"({
            "type": "object",
            "properties": {"directory": {"type": "string"}},
            "required": ["directory"]
          })"};
}

// guide: note
namespace {

constexpr const char* kNoteSchema = R"({
  "type": "object",
  "properties": {"name": {"type": "string", "x-muster-create-only": true}, "text": {"type": "string"}},
  "required": ["name"],
  "x-muster-identity": ["name"]
})";

fs::path notes_dir(const muster::TargetInfo& target) {
  return target.config.at("directory").get<std::string>();
}

/// What is being written, or was when a worker died, is no note.
bool is_draft(const fs::path& path) {
  return path.filename().string().starts_with(kDraft);
}

muster::Result<muster::ListPage> list_notes(const muster::ListRequest& request, muster::JobContext&) {
  std::error_code error;
  fs::directory_iterator entries(notes_dir(request.target), error);
  if (error) return muster::from_errno(error.value(), "list " + notes_dir(request.target).string());
  std::vector<muster::Resource> notes;
  for (const auto& entry : entries) {
    if (!entry.is_regular_file(error) || is_draft(entry.path())) continue;
    notes.push_back({.native_id = muster::percent_encode(entry.path().filename().string())});
  }
  std::ranges::sort(notes, {}, &muster::Resource::native_id);
  return page_of(std::move(notes), request);
}

// guide: read
muster::Result<muster::Resource> read_note(const muster::ReadRequest& request, muster::JobContext&) {
  const auto text = read_text(request.target, request.native_id);
  if (!text) return text.error();
  return muster::Resource{.properties = {{"name", request.native_id}, {"text", *text}}};
}
// end: read

}  // namespace

void add_notes(muster::Plugin& plugin) {
  add_changes(plugin.type({.name = "NOTES::Note", .schema = kNoteSchema}).list(list_notes).read(read_note));
}
// end: note

muster::Result<fs::path> path_of(const muster::TargetInfo& target, const std::string& note) {
  const std::string name = muster::percent_decode(note);
  const fs::path path = notes_dir(target) / name;
  const bool other_spelling = muster::percent_encode(name) != note;  // of a note that has its id
  if (other_spelling || name.find('/') != std::string::npos || is_draft(path) || fs::is_directory(path)) {
    return muster::not_found("no note: " + note);
  }
  return path;
}

muster::Result<std::string> read_text(const muster::TargetInfo& target, const std::string& note) {
  const auto path = path_of(target, note);
  if (!path) return path.error();
  std::ifstream file(*path);
  if (!file) return muster::from_errno(errno, "open " + path->string());
  std::ostringstream text;
  text << file.rdbuf();
  return muster::percent_encode(text.str());  // properties are UTF-8, whatever a file holds
}

muster::ListPage page_of(std::vector<muster::Resource> all, const muster::ListRequest& request) {
  const auto next = std::ranges::upper_bound(all, request.page_token, {}, &muster::Resource::native_id);
  all.erase(all.begin(), next);
  if (all.size() <= request.page_size) return {.items = std::move(all)};
  all.resize(request.page_size);
  return {.items = all, .next_page_token = all.back().native_id};
}
