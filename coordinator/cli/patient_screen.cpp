#include "coordinator/cli/patient_screen.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "worker_sdk/bus/stderr_gate.h"

namespace muster::cli {
namespace {

/// Standard error, of which a process has one.
class PatientStderr {
 public:
  void put(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    while (!text.empty()) {
      if (!gate_.open()) {
        left_out_ += text.size();
        return;
      }
      if (left_out_ > 0) {
        write_out("\nmuster: nobody read this: " + std::to_string(std::exchange(left_out_, 0)) +
                  " bytes were left out\n");
        continue;
      }
      const auto piece = text.substr(0, StderrGate::kBytes);
      write_out(piece);
      text.remove_prefix(piece.size());
    }
  }

 private:
  static void write_out(std::string_view text) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }

  std::mutex mutex_;
  StderrGate gate_;
  std::size_t left_out_ = 0;
};

void put_on_stderr(std::string_view text) {
  static PatientStderr patient;
  patient.put(text);
}

}  // namespace

PatientScreen::PatientScreen(const Screen& screen)
    : err_(&screen.err == &std::cerr ? &buffer_ : screen.err.rdbuf()),
      screen_{screen.out,   err_,          screen.format,   screen.verbosity,
              screen.width, screen.colour, screen.progress, screen.progress_width} {}

PatientScreen::Buffer::int_type PatientScreen::Buffer::overflow(int_type c) {
  const char one = traits_type::to_char_type(c);
  if (!traits_type::eq_int_type(c, traits_type::eof())) put_on_stderr({&one, 1});
  return traits_type::not_eof(c);
}

std::streamsize PatientScreen::Buffer::xsputn(const char* text, std::streamsize size) {
  put_on_stderr({text, static_cast<std::size_t>(size)});
  return size;
}

}  // namespace muster::cli
