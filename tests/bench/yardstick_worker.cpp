// The worker of the yardsticks: pages of resources, as fast as they can be made. A request is text:
//   L FIRST COUNT      ids with properties
//   C FIRST COUNT      the same, once a share of them has changed
//   I FIRST COUNT      ids only
//   R ID\nID\n…        these, with properties
// The answer is schema/reply.capnp, so that the bytes on the bus are those of the product; what is too much for one
// message is sent in several, all but the last with `.more` behind the reply subject. Left out, against a worker:
// slots, leases, heartbeats, checks, and the making of the properties, which are a template with numbers patched in.

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "reply.capnp.h"
#include "tests/bench/loop_client.h"
#include "tests/bench/yardstick.h"

namespace muster::bench {
namespace {

/// Properties of `bytes` bytes; the index stands in them as nine digits.
class Template {
 public:
  explicit Template(const PageOptions& options)
      : filtered_(options.filtered),
        listing_(options.resources / options.types),
        first_changed_(static_cast<std::uint32_t>(listing_ * (1 - options.changed))) {
    text_ = R"({"Tags":[{"Key":"Env","Value":"prod"},{"Key":"Name","Value":"amber-000000000"},)"
            R"({"Key":"Temp","Value":"none"}],"index":100000000,"name":"amber-000000000","payload":")";
    const std::string tail = R"(","region":"eu-central-1","revision":0,"size":123456})";
    while (text_.size() + tail.size() < options.bytes) text_ += "0123456789abcdef"[text_.size() * 7 % 16];
    text_ += tail;
    tag_ = text_.find("amber-") + 6;
    temp_ = text_.find("none");
    index_ = text_.find("\"index\":1") + 9;
    name_ = text_.find("amber-", tag_) + 6;
    revision_ = text_.find("\"revision\":") + 11;
  }

  const std::string& of(std::uint32_t index, bool later) {
    text_[revision_] = later && index % listing_ >= first_changed_ ? '1' : '0';
    char digits[9];
    for (int i = 9; i-- > 0; index /= 10) digits[i] = static_cast<char>('0' + index % 10);
    std::memcpy(&text_[tag_], digits, 9);
    std::memcpy(&text_[index_], digits + 1, 8);
    std::memcpy(&text_[name_], digits, 9);
    const double place = (digits[7] - '0') * 0.1 + (digits[8] - '0') * 0.01;
    std::memcpy(&text_[temp_], place < filtered_ ? "true" : "none", 4);
    return text_;
  }

 private:
  double filtered_;
  std::uint32_t listing_, first_changed_;  // resources of a type, and the first that changes
  std::string text_;
  std::size_t tag_ = 0, temp_ = 0, index_ = 0, name_ = 0, revision_ = 0;
};

std::uint32_t number(std::string_view& text) {
  std::uint32_t value = 0;
  const auto start = text.find_first_of("0123456789");
  text.remove_prefix(start);
  text.remove_prefix(
      static_cast<std::size_t>(std::from_chars(text.data(), text.data() + text.size(), value).ptr - text.data()));
  return value;
}

constexpr std::size_t kMostBytes = 900'000;  // of the properties in a message: the server takes 1 MiB

}  // namespace

int serve_pages(const PageOptions& options) {
  LoopClient client(options.url, "bench.pages", "workers");
  Template properties(options);
  const auto at_once = static_cast<std::uint32_t>(std::max<std::size_t>(kMostBytes / (options.bytes + 200), 1));
  std::vector<capnp::word> segment(kMostBytes / sizeof(capnp::word) + 1024);
  std::string id = "thing0-00000000";
  const auto name = [&](std::uint32_t index) {
    for (std::size_t i = id.size(); i-- > 7; index /= 10) id[i] = static_cast<char>('0' + index % 10);
  };
  std::string subject;
  const auto answer = [&](char what, std::string_view& text, std::uint32_t first, std::uint32_t count) {
    const bool by_id = what == 'R';
    capnp::MallocMessageBuilder message(kj::arrayPtr(segment.data(), segment.size()));
    auto reply = message.initRoot<wire::JobReply>();
    reply.setFleet("01M7ZDGFYVGRE53ZH6E4XYQB7R");
    reply.setWorker("01M7ZDGFYVGRE53ZH6E4XYQB7R");
    auto items = reply.getBody().initResult().initList().initItems(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      auto index = first + i;
      if (by_id) {
        text.remove_prefix(text.find('-') + 1);
        index = number(text);
      }
      name(index);
      items[i].setNativeId(capnp::Text::Reader(id.data(), id.size()));
      items[i].setUid("0123456789abcdef");
      if (what == 'I') continue;
      const auto& made = properties.of(index, what == 'C');
      items[i].setProperties(capnp::Text::Reader(made.data(), made.size()));
    }
    const auto words = capnp::messageToFlatArray(message);
    const auto bytes = words.asChars();
    client.answer(subject.c_str(), {bytes.begin(), bytes.size()});
  };
  client.serve([&](const Arrived& request) {
    auto text = request.data();
    const char what = text.front();
    auto first = what == 'R' ? 0 : number(text);
    auto count = what == 'R' ? static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n')) : number(text);
    for (subject = request.reply() + std::string(".more"); count > at_once; count -= at_once, first += at_once) {
      answer(what, text, first, at_once);
    }
    subject = request.reply();
    answer(what, text, first, count);
  });
  return 0;
}

}  // namespace muster::bench
