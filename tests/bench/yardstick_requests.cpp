// What jobs are measured against: requests and replies of the same sizes, so many in flight, without any meaning. Each
// request has a reply subject of its own, as long as a job's, as request() of every client library has it: the server
// has to look up who wants it. With --same-subjects each place in flight uses one again, which nobody could tell late
// answers by, and which the server knows already.

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/loop_client.h"
#include "tests/bench/stopwatch.h"
#include "tests/bench/yardstick.h"

namespace muster::bench {

int serve_echo(const RequestOptions& options) {
  LoopClient client(options.url, "bench.echo", "workers");
  const std::string reply(options.reply, 'r');
  client.serve([&](const Arrived& request) { client.answer(request, reply); });
  return 0;
}

int serve_silence(const RequestOptions& options) {
  LoopClient client(options.url, "$JS.API.>");
  client.serve([](const Arrived&) {});
  return 0;
}

int observe(const RequestOptions& options) {
  std::vector<std::jthread> observers;
  for (std::uint32_t i = 0; i < options.count; ++i) {
    observers.emplace_back([&] {
      LoopClient client(options.url, "muster.event.>");
      client.publish("muster.event.bench.here", "bench.nobody", {});  // who hears this hears all that follows
      bool hears = false;
      client.serve([&](const Arrived&) {
        if (std::exchange(hears, true)) return;
        std::puts("hears");
        std::fflush(stdout);
      });
    });
  }
  return 0;
}

int run_requests(const RequestOptions& options) {
  LoopClient client(options.url, "bench.answer.>");
  const std::string request(options.request, 'q');
  std::vector<Stopwatch> begun(options.window);
  std::vector<double> took;
  took.reserve(options.count);
  std::uint32_t asked = 0;
  const auto ask = [&](std::size_t place) {
    if (asked >= options.count) return;
    const std::uint64_t mark = options.same_subjects ? 0 : asked * 0x9E3779B97F4A7C15U;
    ++asked;
    char subject[80];
    std::snprintf(subject, sizeof subject, "bench.answer.%04zu.01M7ZDGFYVGRE53ZH6E4XYQB7R.%026" PRIu64, place, mark);
    begun[place] = Stopwatch();
    client.publish("bench.echo", subject, request);
  };
  client.await("bench.echo", "bench.answer.first", request);
  const Stopwatch watch;
  for (std::size_t i = 0; i < options.window; ++i) ask(i);
  while (took.size() < options.count) {
    client.turn_for_answers([&](const Arrived& reply) {
      const auto place =
          static_cast<std::size_t>(std::atoi(reply.subject() + std::char_traits<char>::length("bench.answer.")));
      took.push_back(begun[place].seconds());
      ask(place);
    });
  }
  const auto seconds = watch.seconds();
  std::sort(took.begin(), took.end());
  std::printf(R"({"seconds":%f,"p50":%f,"p99":%f})"
              "\n",
              seconds, took[took.size() / 2], took[took.size() * 99 / 100]);
  return 0;
}

}  // namespace muster::bench
