#include "notes.h"

int main(int argc, char** argv) {
  muster::Worker worker(
      {.name = "notes", .ns = "NOTES", .version = "1.0.0", .description = "Text files in a directory"});
  add_notes(worker);
  return worker.run(argc, argv);
}
