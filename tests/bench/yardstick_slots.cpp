// What many workers with slots are measured against: each has a subject of its own and one thread, which answers each
// request when its 20 ms are over; who asks has always as many requests with each as it has slots, and asks the next
// with the answer in hand. Left out, against dispatch and workers: queue groups, leases, tokens, heartbeats, deadlines,
// limits, jobs that wait at the worker, and whatever the bytes mean.

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

#include "tests/bench/loop_client.h"
#include "tests/bench/stopwatch.h"
#include "tests/bench/yardstick.h"

namespace muster::bench {
namespace {

constexpr std::chrono::milliseconds kLatency{20};
constexpr std::string_view kHello = "hello";

std::string subject_of(std::uint32_t place) {
  return "bench.slot." + std::to_string(place);
}

}  // namespace

int serve_slots(const RequestOptions& options) {
  using Clock = std::chrono::steady_clock;
  LoopClient client(options.url, subject_of(options.place));
  const std::string answer(options.reply, 'r');
  std::deque<std::pair<Clock::time_point, std::string>> asked;  // when the answer is due, and its subject
  const auto take = [&](const Arrived& request) {
    if (request.data() == kHello) return client.answer(request, kHello);
    asked.emplace_back(Clock::now() + kLatency, request.reply());
  };
  while (asked.empty() ? client.turn(take) : client.turn(take, asked.front().first - Clock::now())) {
    for (; !asked.empty() && asked.front().first <= Clock::now(); asked.pop_front()) {
      client.answer(asked.front().second.c_str(), answer);
    }
  }
  return 0;
}

int run_slots(const RequestOptions& options) {
  LoopClient client(options.url, "bench.answer.>");
  const std::string request(options.request, 'q');
  std::uint64_t asked = 0, done = 0;
  const auto ask = [&](std::uint32_t place) {
    char subject[80];
    std::snprintf(subject, sizeof subject, "bench.answer.%04" PRIu32 ".01M7ZDGFYVGRE53ZH6E4XYQB7R.%026" PRIu64, place,
                  ++asked * 0x9E3779B97F4A7C15U);
    client.publish(subject_of(place), subject, request);
  };
  for (std::uint32_t place = 0; place < options.count; ++place) {
    client.await(subject_of(place), "bench.answer.hello", kHello);
  }
  for (std::uint32_t i = 0; i < options.count * options.window; ++i) ask(i % options.count);
  const auto run = [&](double seconds) {
    done = 0;
    const Stopwatch watch;
    while (watch.seconds() < seconds) {
      client.turn_for_answers([&](const Arrived& answer) {
        if (answer.data() == kHello) return;
        ++done;
        ask(static_cast<std::uint32_t>(std::atoi(answer.subject() + std::char_traits<char>::length("bench.answer."))));
      });
    }
    return static_cast<double>(done) / watch.seconds();
  };
  run(kWarmUpSeconds);
  std::printf(R"({"per_second":%f})"
              "\n",
              run(options.seconds));
  return 0;
}

}  // namespace muster::bench
