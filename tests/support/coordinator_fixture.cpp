#include "support/coordinator_fixture.h"

#include <algorithm>
#include <stdexcept>

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "coordinator/sqlite_store.h"

namespace muster::test {

CoordinatorFixture::CoordinatorFixture()
    : log_(std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>())) {
  config.discovery_interval = Millis(0);
  config.retry = {3, Millis(10), Millis(50)};
  add_target("t");
  store = std::move(open_sqlite_store(":memory:", clock, random).value());
  user = broker.connect("user");
  user->subscribe_answers(user->inbox() + ".>").value();
  events_ = user->subscribe(Subjects(config.prefix).events()).value();
}

CoordinatorFixture::~CoordinatorFixture() = default;

TargetConfig& CoordinatorFixture::add_target(const std::string& name, const std::string& ns) {
  auto& target = config.targets.emplace_back();
  target.name = name;
  target.ns = ns;
  return target;
}

FakeWorker& CoordinatorFixture::add_worker(const std::string& id, const Manifest& of) {
  auto& worker = *workers.emplace_back(std::make_unique<FakeWorker>(broker, clock, id, of, system));
  worker.announce();
  return worker;
}

void CoordinatorFixture::remove_worker(const std::string& id) {
  std::erase_if(workers, [&](const auto& worker) { return worker->announcement.worker.value == id; });
}

void CoordinatorFixture::start() {
  bus = broker.connect("coordinator");
  coordinator = std::make_unique<Coordinator>(config, *store, *bus, clock, random, log_);
  coordinator->start().value();
  settle();
}

void CoordinatorFixture::crash() {
  coordinator.reset();
  bus.reset();
  store->rollback();
}

void CoordinatorFixture::start_discovered() {
  add_worker();
  start();
  finish_runs();
}

void CoordinatorFixture::settle() {
  constexpr int kTooMany = 10'000;  // turns without time passing: a loop that does not move
  for (int turns = 0; turns < kTooMany; ++turns) {
    if (coordinator) coordinator->turn();
    bool moved = listen();
    for (auto& worker : workers) moved |= worker->turn();
    const bool due = coordinator && coordinator->next_due() <= clock.now();
    const auto arriving = broker.next_due();
    if (!moved && !due && (!arriving || *arriving > clock.now())) return;
  }
  throw std::runtime_error("the fleet does not come to rest");
}

void CoordinatorFixture::step(TimePoint end) {
  auto next = std::min(end, clock.now() + Millis(250));
  if (coordinator) next = std::min(next, coordinator->next_due());
  for (const auto& worker : workers) next = std::min(next, worker->next_due());
  if (const auto arriving = broker.next_due()) next = std::min(next, *arriving);
  clock.set(std::min(end, std::max(next, clock.now() + Millis(1))));
  settle();
}

void CoordinatorFixture::advance(Millis by) {
  settle();
  for (const auto end = clock.now() + by; clock.now() < end;) step(end);
}

bool CoordinatorFixture::listen() {
  std::vector<Message> inbox;
  user->receive(inbox, 10'000);
  for (const auto& message : inbox) {
    if (message.subscription == events_) {
      event_messages.push_back({std::string(message.subject), std::string(message.header("content-type")),
                                std::string(message.header("Nats-Msg-Id")), std::string(message.data)});
    } else {
      answers_[std::string(message.subject)] = message.data;
    }
  }
  return !inbox.empty();
}

std::string CoordinatorFixture::api_text(const std::string& verb, const std::string& body) {
  const auto reply = user->inbox() + "." + std::to_string(++requests_);
  user->publish({Subjects(config.prefix).api(verb), reply, body, {}}).value();
  wait_until([&] { return answers_.contains(reply); }, Millis(5000));
  return answers_.extract(reply).mapped();
}

CoordinatorFixture::Json CoordinatorFixture::api(const std::string& verb, const Json& request) {
  auto body = request;
  body["api"] = 1;
  return Json::parse(api_text(verb, body.dump()));
}

CoordinatorFixture::Json CoordinatorFixture::discover(const Json& request) {
  const auto answer = api("discover", request);
  if (answer.contains("error")) throw std::runtime_error(answer.dump());
  finish_runs();
  return api("run", {{"run", answer.at("run")}});
}

CoordinatorFixture::Json CoordinatorFixture::scan_of(const Json& report, const std::string& type,
                                                     const std::string& target) {
  for (const auto& scan : report.at("scans")) {
    if (scan.at("type") == type && scan.at("target") == target) return scan;
  }
  throw std::runtime_error("no scan of " + target + " " + type + " in " + report.dump());
}

std::vector<CoordinatorFixture::Json> CoordinatorFixture::events(const std::string& prefix) {
  std::vector<Json> found;
  for (; events_seen_ < event_messages.size(); ++events_seen_) {
    const auto body = Json::parse(event_messages[events_seen_].data);
    for (const auto& event : body.is_array() ? body : Json::array({body})) {
      // At least once: after a crash some come again, with the id they had.
      const bool fresh = event_ids_.insert(event.at("id").get<std::string>()).second;
      if (fresh && event.at("type").get<std::string>().starts_with("muster." + prefix)) found.push_back(event);
    }
  }
  return found;
}

std::vector<std::string> CoordinatorFixture::resource_events() {
  std::vector<std::string> found;
  for (const auto& event : events("resource.")) {
    const auto type = event.at("type").get<std::string>();
    found.push_back(type.substr(type.rfind('.') + 1) + ":" + event.at("data").at("native_id").get<std::string>());
  }
  std::ranges::sort(found);
  return found;
}

ResourceRecord CoordinatorFixture::row(const std::string& type, const std::string& native_id,
                                       const std::string& target) {
  auto found = store->one(target, type, native_id).value();
  if (!found) throw std::runtime_error("no row " + target + "/" + type + "/" + native_id);
  return std::move(*found);
}

std::string CoordinatorFixture::state_of(const std::string& type, const std::string& native_id,
                                         const std::string& target) {
  const auto found = store->one(target, type, native_id).value();
  return found ? std::string(resource_state_name(found->state)) : "absent";
}

std::vector<std::string> CoordinatorFixture::listed(const std::string& type) {
  std::vector<std::string> ids;
  const auto answer = api("resources", {{"type", type}});
  for (const auto& item : answer.at("items")) ids.push_back(item.at("native_id"));
  std::ranges::sort(ids);
  return ids;
}

}  // namespace muster::test
