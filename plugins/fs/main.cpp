#include "fs.h"

int main(int argc, char** argv) {
  muster::Worker worker(muster::fs::plugin_info());
  muster::fs::add_types(worker);
  return worker.run(argc, argv);
}
