#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include "notes.h"

namespace fs = std::filesystem;

// guide: change
namespace {

/// Writes the text into a file beside the note: there is never half a note. Each call has a file of its own, as two
/// workers may be at one note at the same time.
muster::Result<fs::path> draft_of(const fs::path& path, const muster::Json& properties) {
  const auto text = muster::text_of(properties, "text");
  if (!text) return text.error();
  const std::string bytes = muster::percent_decode(*text), escaped = muster::percent_encode(bytes);
  if (escaped != *text) return muster::invalid_request("text: would be read as " + escaped + ", declare it so");
  const auto unique = std::to_string(::getpid()) + "-" + std::to_string(std::random_device{}());
  const fs::path draft = path.parent_path() / (kDraft + unique);
  std::ofstream file(draft, std::ios::binary);
  (file << bytes).flush();
  if (file) return draft;
  const auto failed = muster::from_errno(errno, "write " + draft.string());
  fs::remove(draft);
  return failed;
}

muster::Result<muster::Resource> as_it_is(const muster::TargetInfo& target, const std::string& note) {
  const auto text = read_text(target, note);
  if (!text) return text.error();
  return muster::Resource{.native_id = note, .properties = {{"name", note}, {"text", *text}}};
}

muster::Result<muster::Mutation> create_note(const muster::CreateRequest& request, muster::JobContext&) {
  const auto note = muster::text_of(request.properties, "name");
  if (!note) return note.error();
  const auto path = path_of(request.target, *note);
  if (!path) return muster::invalid_request("no name of a note: " + *note);
  const auto draft = draft_of(*path, request.properties);
  if (!draft) return draft.error();
  std::error_code error;
  fs::create_hard_link(*draft, *path, error);  // ALREADY_EXISTS where there is one: a name makes one note, once
  fs::remove(*draft);
  if (error) return muster::from_errno(error.value(), "create " + path->string());
  return muster::Mutation::of(as_it_is(request.target, *note));
}

muster::Result<muster::Mutation> update_note(const muster::UpdateRequest& request, muster::JobContext&) {
  const auto path = path_of(request.target, request.native_id);
  if (!path) return path.error();
  const auto draft = draft_of(*path, request.desired);
  if (!draft) return draft.error();
  const auto current = as_it_is(request.target, request.native_id);
  if (!current || muster::violates(request.precondition, *current)) {
    fs::remove(*draft);
    return current ? muster::conflict(path->string() + " has changed") : current.error();
  }
  fs::rename(*draft, *path);
  return muster::Mutation::of(as_it_is(request.target, request.native_id));
}

muster::Result<muster::Mutation> remove_note(const muster::DeleteRequest& request, muster::JobContext&) {
  const auto path = path_of(request.target, request.native_id);
  if (!path) return path.error();  // NOT_FOUND: what is not there is deleted
  const auto current = as_it_is(request.target, request.native_id);
  if (!current) return current.error();
  if (muster::violates(request.precondition, *current)) return muster::conflict(path->string() + " has changed");
  fs::remove(*path);
  return muster::Mutation::deleted();
}

}  // namespace

void add_changes(muster::Type& notes) {
  notes.create(create_note).update(update_note).remove(remove_note);
}
// end: change
