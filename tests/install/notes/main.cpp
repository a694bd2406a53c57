#include "notes.h"

int main(int argc, char** argv) {
  muster::Worker worker(notes_info());
  add_notes(worker);
  add_todos(worker);
  add_life(worker);
  return worker.run(argc, argv);  // connects, announces, heartbeats, drains on SIGTERM
}
