#include "postgres.h"

int main(int argc, char** argv) {
  muster::Worker worker(muster::postgres::plugin_info());
  muster::postgres::add_types(worker);
  return worker.run(argc, argv);
}
