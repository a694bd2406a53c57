#pragma once

#include <muster/worker.h>

#include <filesystem>

/// NOTES: text files in a directory. Target config: {"directory": PATH}.
muster::PluginInfo notes_info();

// Each says to `plugin`, which is a Worker in main() and a plain Plugin in tests, what there is of one thing.

/// NOTES::Note: a file; native id = file name.
void add_notes(muster::Plugin& plugin);
/// What can be done to notes beside looking at them.
void add_changes(muster::Type& notes);
/// NOTES::Todo: a line `[ ] what` or `[x] what` of a note; native id = note/what.
void add_todos(muster::Plugin& plugin);
/// What all jobs share.
void add_life(muster::Plugin& plugin);

/// How the name of a file begins that is to become a note.
constexpr const char* kDraft = ".draft-";
/// Where a note is or would be; NOT_FOUND if its name is none of a file in the directory, or that of a draft.
muster::Result<std::filesystem::path> path_of(const muster::TargetInfo& target, const std::string& note);
/// The text of one note.
muster::Result<std::string> read_text(const muster::TargetInfo& target, const std::string& note);
/// The page of `all`, which is sorted by id, that the request asks for: the token is the last id of the page before.
muster::ListPage page_of(std::vector<muster::Resource> all, const muster::ListRequest& request);
