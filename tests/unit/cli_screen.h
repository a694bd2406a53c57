#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cli/client.h"
#include "coordinator/cli/output.h"

namespace muster::test {

/// A screen whose two streams are kept.
struct TestScreen {
  std::ostringstream out, err;
  cli::Screen screen{out, err};

  explicit TestScreen(cli::Format format = cli::Format::kTable) { screen.format = format; }
};

/// A fleet that answers from a list and remembers what it was asked.
class FakeClient final : public cli::Client {
 public:
  struct Request {
    std::string verb;
    cli::Json body;
  };

  /// The next answer to `verb`.
  void answer(const std::string& verb, const std::string& text) { answers_[verb].emplace_back(text); }
  void answer(const std::string& verb, Error error) { answers_[verb].emplace_back(std::move(error)); }
  /// Messages that the next heard() returns.
  void hear(std::vector<std::string> bodies) { heard_.push_back(std::move(bodies)); }

  Result<std::string> ask(std::string_view verb, cli::Json request) override {
    requests.push_back({std::string(verb), std::move(request)});
    auto& list = answers_[std::string(verb)];
    if (list.empty()) return Error{Errc::kNoResponders, "no answer to " + std::string(verb)};
    Result<std::string> next = std::move(list.front());
    list.pop_front();
    return next;
  }
  void ask_ahead(std::string_view verb, const cli::Json& request) override {
    asked_ahead.push_back({std::string(verb), request});
  }
  Result<void> listen() override {
    requests.push_back({"listen", {}});
    return {};
  }
  std::vector<std::string> heard(Millis /*longest*/) override {
    if (heard_.empty()) return {};
    std::vector<std::string> next = std::move(heard_.front());
    heard_.pop_front();
    return next;
  }
  [[nodiscard]] std::uint64_t connections() const override { return connected; }
  [[nodiscard]] bool all_heard() const { return heard_.empty(); }

  std::vector<Request> requests, asked_ahead;
  std::uint64_t connected = 1;  // so many times

 private:
  std::map<std::string, std::deque<Result<std::string>>> answers_;
  std::deque<std::vector<std::string>> heard_;
};

}  // namespace muster::test
