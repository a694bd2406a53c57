#include "coordinator/cli/plugin_reports.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <spdlog/logger.h>

#include "coordinator/cli/output.h"
#include "coordinator/supervision.h"

namespace muster::cli {
namespace {

constexpr Millis kEvery{5000};
constexpr Millis kSoon{1000};          // while something depends on the answer
constexpr Millis kScaling{2000};       // where the number of workers depends on it
constexpr Millis kPatience{1000};      // for one answer
constexpr Millis kAnswerless{30'000};  // then nobody is waited for any more
constexpr Millis kGrace{10'000};       // of what may pass
// Of the texts in a report; a byte that is not UTF-8 becomes three, and the coordinator takes 300 and 4096.
constexpr std::size_t kMaxNameBytes = 100;
constexpr std::size_t kMaxTextBytes = 1365;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Its last part lets nobody speak in its place.
std::string supervisor_name(const std::string& host) {
  SystemRandom random;
  return host + ":" + std::to_string(getpid()) + ":" + make_token(random);
}

const char* state_name(PluginKeeper::State state) {
  static constexpr std::array kNames{"starting", "running", "waiting", "quarantined", "draining"};
  return kNames.at(static_cast<std::size_t>(state));
}

/// Who is refused for want of room cannot tell by how much.
std::string room() {
  return "; a coordinator keeps reports of " + std::to_string(kMaxSupervisors) + " supervisors and " +
         std::to_string(kMaxSupervisedPlugins) + " plugins, " + std::to_string(kMaxSupervisionBytes >> 10U) +
         " KiB in all and half of that from one";
}

}  // namespace

std::string ReportTrouble::heard(const std::optional<Error>& error, TimePoint now) {
  if (!error) {
    since_.reset();
    return std::exchange(told_, {}).empty() ? "" : "a coordinator takes the reports of plugins again";
  }
  if (!since_) since_ = now;
  if (may_pass(*error) && now - *since_ < kGrace) return {};
  std::string text = "no coordinator takes the reports of plugins: " + error->message;
  if (error->code == Errc::kLimit) text += room();
  return std::exchange(told_, text) == text ? "" : text;
}

Json supervise_request(const std::string& supervisor, const std::string& host,
                       const std::vector<PluginHost::Plugin>& plugins) {
  Json request{{"supervisor", supervisor}, {"host", host}, {"plugins", Json::array()}};
  for (const PluginHost::Plugin& plugin : plugins) {
    request["plugins"].push_back({{"plugin", plugin.name.substr(0, kMaxNameBytes)},
                                  {"path", plugin.path.substr(0, kMaxTextBytes)},
                                  {"state", state_name(plugin.status.state)},
                                  {"reason", plugin.status.reason.substr(0, kMaxTextBytes)},
                                  {"restarts", plugin.status.restarts},
                                  {"workers", plugin.workers}});
  }
  return request;
}

std::vector<WorkerNews> worker_news(const Json& answer) {
  const auto number = [](const Json& object, const char* name) -> std::size_t {
    const auto it = object.find(name);
    return it != object.end() && it->is_number_unsigned() ? it->get<std::size_t>() : 0;
  };
  std::map<std::pair<std::string, std::string>, Demand> demands;
  for (const Json& pool : answer.value("pools", Json::array())) {
    demands[{field(pool, "namespace"), field(pool, "pool")}] = {
        number(pool, "slots"), number(pool, "busy"), number(pool, "queued"),
        Millis(static_cast<Millis::rep>(number(pool, "wait_ms")))};
  }
  std::vector<WorkerNews> all;
  for (const Json& worker : answer.value("workers", Json::array())) {
    WorkerNews news;
    news.worker = field(worker, "worker");
    news.lost = field(worker, "state") == "lost";
    news.jobs = number(worker, "jobs");
    const auto demand = demands.find({field(worker, "namespace"), field(worker, "pool")});
    if (demand != demands.end()) news.demand = demand->second;
    if (!news.worker.empty()) all.push_back(news);
  }
  return all;
}

PluginReports::PluginReports(const Config& config, std::function<void()> wake, Supervisor::Log log)
    : host_(host_name()),
      supervisor_(supervisor_name(host_)),
      wake_(std::move(wake)),
      log_(std::move(log)),
      answered_(std::chrono::steady_clock::now()),
      thread_([this, config](const std::stop_token& stop) { talk(stop, config); }) {}

PluginReports::~PluginReports() = default;

Result<Json> PluginReports::ask(std::unique_ptr<Client>& client, const Config& config, const Json& request) {
  if (!client) {
    NatsOptions nats = config.nats;
    nats.name = "muster supervisor";
    auto made = NatsClient::connect(nats, config.prefix, kPatience, std::make_shared<spdlog::logger>("supervisor"));
    if (!made) return made.error();
    client = std::move(*made);
  }
  const auto answer = client->ask("supervise", request);
  if (!answer) return answer.error();
  auto parsed = Json::parse(*answer, nullptr, false);
  if (!parsed.is_object()) return Error{Errc::kMalformed, "the answer is no JSON object", {}, 0};
  return parsed;
}

void PluginReports::talk(const std::stop_token& stop, const Config& config) {
  std::unique_ptr<Client> client;
  while (true) {
    std::unique_lock lock(mutex_);
    if (!news_.wait(lock, stop, [this] { return request_.has_value(); })) return;
    const Json request = *std::exchange(request_, std::nullopt);
    lock.unlock();
    auto answer = ask(client, config, request);
    lock.lock();
    answer_ = std::move(answer);
    lock.unlock();
    wake_();
  }
}

void PluginReports::take_answer(PluginHost& host, TimePoint now) {
  std::unique_lock lock(mutex_);
  const auto answer = std::exchange(answer_, std::nullopt);
  lock.unlock();
  if (answer) {
    const std::string news = trouble_.heard(*answer ? std::nullopt : std::optional(answer->error()), now);
    if (!news.empty()) log_("supervisor", news);
  }
  if (answer && *answer) {
    answered_ = now;
    host.heard(worker_news(**answer), now);
  } else if (now - answered_ >= kAnswerless) {
    host.trust(now - kAnswerless);
  }
}

void PluginReports::turn(PluginHost& host, TimePoint now) {
  if (host.stalled()) answered_ = now;  // nobody could
  take_answer(host, now);
  auto plugins = host.plugins();
  if (now < due_ && plugins == told_) return;
  due_ = now + (host.awaits() ? kSoon : host.scales() ? kScaling : kEvery);
  told_ = std::move(plugins);
  {
    const std::scoped_lock lock(mutex_);
    request_ = supervise_request(supervisor_, host_, told_);
  }
  news_.notify_one();
}

}  // namespace muster::cli
