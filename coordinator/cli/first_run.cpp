#include "coordinator/cli/first_run.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <ostream>
#include <utility>

#include <spdlog/logger.h>

#include "coordinator/cli/verbs.h"

namespace muster::cli {
namespace {

constexpr Millis kPatience{1000};  // for one answer: what is slow is asked again
constexpr Millis kPoll{100};
constexpr std::ptrdiff_t kProblemsShown = 20;

/// Asks until `use` is content with an answer or `stop` is asked for.
void ask_until(const std::stop_token& stop, Client& client, const char* verb, const Json& request,
               const std::function<bool(const Json&)>& use) {
  while (!stop.stop_requested()) {
    const auto answer = client.ask(verb, request);
    if (answer && use(Json::parse(*answer))) return;
    std::this_thread::sleep_for(kPoll);
  }
}

std::unique_ptr<Client> connect(const std::stop_token& stop, const Config& config) {
  NatsOptions nats = config.nats;
  nats.name = "muster up";
  while (!stop.stop_requested()) {
    auto client = NatsClient::connect(nats, config.prefix, kPatience, std::make_shared<spdlog::logger>("up"));
    if (client) return std::move(*client);
    std::this_thread::sleep_for(kPoll);
  }
  return nullptr;
}

}  // namespace

FirstRun::FirstRun(const Config& config, Screen& screen, std::function<void()> done)
    : thread_([this, config, &screen, done = std::move(done)](const std::stop_token& stop) {
        try {
          watch(stop, config, screen);
        } catch (const std::exception& error) {
          screen.err << "muster: " << error.what() << std::endl;
        }
        done_ = true;
        done();
      }) {}

void FirstRun::watch(const std::stop_token& stop, const Config& config, Screen& screen) {
  const std::unique_ptr<Client> client = connect(stop, config);
  if (!client) return;
  std::string since;
  ask_until(stop, *client, "status", Json::object(), [&](const Json& status) {
    since = field(status, "started_at");
    served_ = true;
    return true;
  });
  const bool discovers = std::any_of(config.targets.begin(), config.targets.end(),
                                     [](const TargetConfig& target) { return target.discover; });
  int result = 0;
  if (discovers) {
    // The newest run is the one of this start unless it ended before; times are RFC 3339 in UTC, which sort as text.
    std::string id;
    ask_until(stop, *client, "runs", {{"limit", 1}}, [&](const Json& runs) {
      const Json items = runs.value("items", Json::array());
      if (items.empty()) return false;
      const std::string finished = field(items.front(), "finished_at");
      if (finished.empty() || finished >= since) id = field(items.front(), "run");
      return !id.empty();
    });
    if (stop.stop_requested()) return;
    const auto finished = await_run(*client, screen, id, [&] { return stop.stop_requested(); });
    if (!finished) {
      report(screen, finished.error());
      return;
    }
    if (!finished->has_value()) return;
    const Json run = Json::parse(**finished);
    result = run_status(run);
    const Json problems = run.value("problems", Json::array());
    for (const Json& problem : problems) {
      if (&problem - &problems.front() == kProblemsShown) {
        note(screen, "and more problems: muster run " + escape(id));
        break;
      }
      note(screen, escape("problem: " + field(problem, "target") + " " + field(problem, "type") + " " +
                          field(problem, "code") + ": " + field(problem, "message")));
    }
    note(screen, escape("first run " + field(run, "state") + " (" + id + ")"));
  }
  const int counted = counts(*client, screen);
  status_ = std::max(result, counted);
}

}  // namespace muster::cli
