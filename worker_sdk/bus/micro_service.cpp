#include "worker_sdk/bus/micro_service.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <utility>

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kJitterMs = 50;
constexpr std::size_t kMaxPending = 256;  // more questions than that at once are not answered

std::string rfc3339(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::string text(sizeof "YYYY-MM-DDThh:mm:ssZ", '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc));
  return text;
}

}  // namespace

MicroService::MicroService(Description description) : description_(std::move(description)) {
  const auto illegal = [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; };
  std::replace_if(description_.name.begin(), description_.name.end(), illegal, '-');
}

Result<void> MicroService::start(Bus& bus) {
  constexpr std::pair<Verb, const char*> kVerbs[] = {
      {Verb::kPing, "$SRV.PING"}, {Verb::kInfo, "$SRV.INFO"}, {Verb::kStats, "$SRV.STATS"}};
  for (const auto& [verb, all] : kVerbs) {
    const std::string by_name = std::string(all) + "." + description_.name;
    for (const std::string& subject : {std::string(all), by_name, by_name + "." + description_.id}) {
      auto subscribed = bus.subscribe(subject);
      if (!subscribed) return std::move(subscribed.error());
      subscriptions_[*subscribed] = verb;
    }
  }
  return {};
}

bool MicroService::handle(const Message& message, TimePoint now, Random& random) {
  const auto verb = subscriptions_.find(message.subscription);
  if (verb == subscriptions_.end()) return false;
  if (!message.reply.empty() && pending_.size() < kMaxPending) {
    pending_.push_back({now + Millis(random.below(kJitterMs + 1)), verb->second, std::string(message.reply)});
  }
  return true;
}

TimePoint MicroService::next_due() const {
  TimePoint due = TimePoint::max();
  for (const Pending& pending : pending_) due = std::min(due, pending.due);
  return due;
}

void MicroService::tick(Bus& bus, const Stats& stats, TimePoint now) {
  std::erase_if(pending_, [&](const Pending& pending) {
    if (pending.due > now) return false;
    // A publish that fails has nobody left to tell: the asker's own time-out does.
    static_cast<void>(bus.publish({pending.reply, {}, answer(pending.verb, stats), {}}));
    return true;
  });
}

std::string MicroService::answer(Verb verb, const Stats& stats) const {
  Json json{{"name", description_.name},
            {"id", description_.id},
            {"version", description_.version},
            {"metadata", description_.metadata}};
  Json endpoint{
      {"name", description_.endpoint}, {"subject", description_.subject}, {"queue_group", description_.queue_group}};
  switch (verb) {
    case Verb::kPing:
      json["type"] = "io.nats.micro.v1.ping_response";
      break;
    case Verb::kInfo:
      json["type"] = "io.nats.micro.v1.info_response";
      json["description"] = description_.description;
      endpoint["metadata"] = Json::object();
      json["endpoints"] = Json::array({endpoint});
      break;
    case Verb::kStats:
      json["type"] = "io.nats.micro.v1.stats_response";
      json["started"] = rfc3339(description_.started);
      endpoint["num_requests"] = stats.requests;
      endpoint["num_errors"] = stats.errors;
      endpoint["last_error"] = stats.last_error;
      endpoint["processing_time"] = stats.processing.count();
      endpoint["average_processing_time"] =
          stats.requests == 0 ? 0 : stats.processing.count() / static_cast<std::int64_t>(stats.requests);
      endpoint["data"] = stats.data;
      json["endpoints"] = Json::array({endpoint});
      break;
  }
  return json.dump();
}

}  // namespace muster
