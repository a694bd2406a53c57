// The worker of the yardsticks: pages of resources, as fast as they can be made. A request is text:
//   L FIRST COUNT      ids with properties
//   I FIRST COUNT      ids only
//   R ID\nID\n…        these, with properties
// The answer is schema/reply.capnp, so that the bytes on the bus are those of the product. Left out, against a worker:
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
  Template(std::size_t bytes, double filtered, double changed) : filtered_(filtered), changed_(changed) {
    text_ = R"({"Tags":[{"Key":"Env","Value":"prod"},{"Key":"Name","Value":"amber-000000000"},)"
            R"({"Key":"Temp","Value":"none"}],"index":100000000,"name":"amber-000000000","payload":")";
    const std::string tail = R"(","region":"eu-central-1","revision":0,"size":123456})";
    while (text_.size() + tail.size() < bytes) text_ += "0123456789abcdef"[text_.size() * 7 % 16];
    text_ += tail;
    tag_ = text_.find("amber-") + 6;
    temp_ = text_.find("none");
    index_ = text_.find("\"index\":1") + 9;
    name_ = text_.find("amber-", tag_) + 6;
    revision_ = text_.find("\"revision\":") + 11;
  }

  const std::string& of(std::uint32_t index) {
    char digits[9];
    for (int i = 9; i-- > 0; index /= 10) digits[i] = static_cast<char>('0' + index % 10);
    std::memcpy(&text_[tag_], digits, 9);
    std::memcpy(&text_[index_], digits + 1, 8);
    std::memcpy(&text_[name_], digits, 9);
    const double place = (digits[7] - '0') * 0.1 + (digits[8] - '0') * 0.01;
    std::memcpy(&text_[temp_], place < filtered_ ? "true" : "none", 4);
    text_[revision_] = place >= 1 - changed_ ? '1' : '0';
    return text_;
  }

 private:
  double filtered_, changed_;
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

}  // namespace

int serve_pages(const PageOptions& options) {
  LoopClient client(options.url, "bench.pages", "workers");
  Template properties(options.bytes, options.filtered, options.changed);
  std::vector<capnp::word> segment(options.page * (options.bytes + 200) / sizeof(capnp::word) + 1024);
  std::string id = "thing0-00000000";
  const auto name = [&](std::uint32_t index) {
    for (std::size_t i = id.size(); i-- > 7; index /= 10) id[i] = static_cast<char>('0' + index % 10);
  };
  client.serve([&](const Arrived& request) {
    auto text = request.data();
    const char what = text.front();
    const bool by_id = what == 'R';
    const auto first = by_id ? 0 : number(text);
    const auto count = by_id ? static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n')) : number(text);
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
      const auto& made = properties.of(index);
      items[i].setProperties(capnp::Text::Reader(made.data(), made.size()));
    }
    const auto words = capnp::messageToFlatArray(message);
    const auto bytes = words.asChars();
    client.answer(request, {bytes.begin(), bytes.size()});
  });
  return 0;
}

}  // namespace muster::bench
