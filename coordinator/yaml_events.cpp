#include "coordinator/yaml_events.h"

#include <new>
#include <system_error>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kLong = 1 << 20;  // bytes of text that are worth a thread
constexpr std::size_t kAtOnce = 256;    // events
constexpr std::size_t kBatches = 8;     // that it is ahead at most

void forget(std::vector<yaml_event_t>& events, std::size_t from = 0) {
  for (; from < events.size(); ++from) yaml_event_delete(&events[from]);
}

}  // namespace

YamlEvents::YamlEvents(std::string_view text) {
  if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
  yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  if (text.size() < kLong) return;
  try {
    thread_ = std::thread([this] { go_ahead(); });
  } catch (const std::system_error&) {  // no more threads: it takes a little longer
  }
}

YamlEvents::~YamlEvents() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      unwanted_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  forget(batch_, at_ == 0 ? 0 : at_ - 1);
  for (auto& batch : ahead_) forget(batch);
  yaml_parser_delete(&parser_);
}

bool YamlEvents::next() {
  if (at_ > 0) yaml_event_delete(&batch_[at_ - 1]);
  if (at_ == batch_.size()) {
    batch_ = thread_.joinable() ? take() : parse();
    at_ = 0;
  }
  if (batch_.empty()) return false;
  ++at_;
  return true;
}

YamlEvents::Batch YamlEvents::parse() {
  Batch batch;
  batch.reserve(kAtOnce);
  while (batch.size() < kAtOnce && !ended_) {
    auto& event = batch.emplace_back();
    if (yaml_parser_parse(&parser_, &event) == 0) {
      batch.pop_back();
      ended_ = true;
    } else {
      ended_ = event.type == YAML_STREAM_END_EVENT;
    }
  }
  return batch;
}

YamlEvents::Batch YamlEvents::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ahead_.empty() || all_; });
  if (ahead_.empty()) return {};
  auto batch = std::move(ahead_.front());
  ahead_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return batch;
}

void YamlEvents::go_ahead() {
  for (bool last = false; !last;) {
    auto batch = parse();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ahead_.size() < kBatches || unwanted_; });
    ahead_.push_back(std::move(batch));
    all_ = ended_;
    last = ended_ || unwanted_;
    lock.unlock();
    changed_.notify_all();
  }
}

}  // namespace muster
