#pragma once

#include <muster/worker.h>

/// NOTES::Note: a text file in a directory; native id = file name. Target config: {"directory": PATH}.
muster::Result<muster::ListPage> list_notes(const muster::ListRequest& request, muster::JobContext& context);
muster::Result<muster::Resource> read_note(const muster::ReadRequest& request, muster::JobContext& context);

/// Describes the type to `plugin`, which is a Worker in main() and a plain Plugin in tests.
void add_notes(muster::Plugin& plugin);
