#pragma once

#include <cstddef>

namespace muster {

/// Whether standard error takes some more at once, or in a moment. Once it has not, it is not waited for until it does:
/// where nobody reads what a process says, the process goes on. Thread: any, one at a time.
class StderrGate {
 public:
  static constexpr std::size_t kBytes = 4096;  // that it takes when it is open: what a pipe has room for at least

  bool open();

 private:
  bool stuck_ = false;
};

}  // namespace muster
