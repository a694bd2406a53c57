#include "coordinator/cli/app.h"
#include "coordinator/service.h"

int main(int argc, char** argv) {
  return muster::cli::run(argc, argv, &muster::run_coordinator);
}
