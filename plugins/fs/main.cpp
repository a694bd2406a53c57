#include <csignal>

#include "fs.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit of the process fails that job, not the worker
  muster::Worker worker(muster::fs::plugin_info());
  muster::fs::add_types(worker);
  return worker.run(argc, argv);
}
