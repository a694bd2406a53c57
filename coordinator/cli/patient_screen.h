#pragma once

#include <ostream>
#include <streambuf>

#include "coordinator/cli/output.h"

namespace muster::cli {

/// A screen for what has to go on though nobody reads what it says: where standard error takes nothing for a moment,
/// it is left out, and counted, until it does again. Other streams are written to as ever. Thread: the one that made
/// it; each has its own.
class PatientScreen {
 public:
  explicit PatientScreen(const Screen& screen);
  PatientScreen(const PatientScreen&) = delete;
  PatientScreen& operator=(const PatientScreen&) = delete;

  [[nodiscard]] Screen& screen() { return screen_; }

 private:
  class Buffer final : public std::streambuf {
   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
  };

  Buffer buffer_;
  std::ostream err_;
  Screen screen_;
};

}  // namespace muster::cli
