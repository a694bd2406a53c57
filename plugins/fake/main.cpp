#include "fake.h"

int main(int argc, char** argv) {
  muster::Worker worker(muster::fake::plugin_info());
  muster::fake::add_types(worker);
  return worker.run(argc, argv);
}
