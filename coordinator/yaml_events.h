#pragma once

#include <yaml.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace muster {

/// The events that the YAML library makes of a text, one after the other. A thread goes ahead of whoever takes those of
/// a long text: what is made of them takes as long as they do. Thread: one.
class YamlEvents {
 public:
  /// `text`   outlives it
  explicit YamlEvents(std::string_view text);
  ~YamlEvents();
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

  /// false: a syntax error, see parser(), or the end of the stream is behind.
  bool next();
  /// What next() has come to.
  [[nodiscard]] const yaml_event_t& event() const { return batch_[at_ - 1]; }
  /// Once next() has given false.
  [[nodiscard]] const yaml_parser_t& parser() const { return parser_; }

 private:
  using Batch = std::vector<yaml_event_t>;
  Batch parse();
  Batch take();
  void go_ahead();

  yaml_parser_t parser_{};
  bool ended_ = false;  // the parser has no more
  Batch batch_;
  std::size_t at_ = 0;  // event of the batch that comes next

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ahead_;
  bool all_ = false;       // there are no more than those
  bool unwanted_ = false;  // nobody takes them any more
  std::thread thread_;     // has the parser until it is done
};

}  // namespace muster
