#include "notes.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

namespace fs = std::filesystem;

constexpr const char* kNoteSchema = R"({
  "type": "object",
  "properties": {"name": {"type": "string", "readOnly": true}, "text": {"type": "string"}}
})";

fs::path notes_dir(const muster::TargetInfo& target) {
  return target.config.at("directory").get<std::string>();
}

}  // namespace

muster::Result<muster::ListPage> list_notes(const muster::ListRequest& request, muster::JobContext&) {
  std::error_code error;
  fs::directory_iterator entries(notes_dir(request.target), error);
  if (error) return muster::from_errno(error.value(), "list " + notes_dir(request.target).string());
  muster::ListPage page;
  for (const auto& entry : entries)
    page.items.push_back({.native_id = muster::percent_encode(entry.path().filename().string())});
  return page;
}

muster::Result<muster::Resource> read_note(const muster::ReadRequest& request, muster::JobContext&) {
  const auto path = notes_dir(request.target) / muster::percent_decode(request.native_id);
  std::ifstream file(path);
  if (!file) return muster::from_errno(errno, "open " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return muster::Resource{.properties = {{"name", request.native_id}, {"text", text.str()}}};
}

void add_notes(muster::Plugin& plugin) {
  plugin.type({.name = "NOTES::Note", .schema = kNoteSchema, .label_query = "$.name"}).list(list_notes).read(read_note);
}
