#include "nats.h"

int main(int argc, char** argv) {
  muster::Worker worker(muster::nats::plugin_info());
  muster::nats::add_types(worker, worker.bus());
  return worker.run(argc, argv);
}
