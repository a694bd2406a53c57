#include "coordinator/cli/plugin_test/fleet.h"

#include <csignal>

#include <spdlog/logger.h>

#include "coordinator/cli/nats_server.h"
#include "coordinator/cli/worker_command.h"
#include "schema/codec.h"

namespace muster::cli::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kTurn{20};  // children's output has to be read now and then, whatever the bus says
constexpr Millis kStart{60'000};
constexpr Millis kPoll{100};

}  // namespace

TestFleet::TestFleet(FleetOptions options)
    : options_(std::move(options)),
      fleet_(make_ulid(std::chrono::system_clock::now(), random_)),
      self_(make_token(random_)) {}

void TestFleet::start() {
  const auto server = prepare_nats_server(options_.directory.string(), options_.env);
  if (!server) throw Stopped(server.error().message);
  auto child = Child::start(server->command);
  if (!child) throw Stopped(child.error().message);
  server_ = std::move(*child);
  url_ = server->url;
  const auto log = std::make_shared<spdlog::logger>("muster");
  NatsOptions nats;
  nats.url = url_;
  nats.name = "muster plugin test";
  nats.connect_timeout = Millis{500};
  const auto deadline = Clock::now() + kStart;
  for (;;) {
    auto bus = NatsBus::connect(nats, log);
    if (bus) {
      bus_ = std::move(*bus);
      break;
    }
    std::string said;
    server_->read_lines([&](std::string_view line) { said = line; });
    if (int status = 0; server_->ended(status)) {
      server_->read_rest([&](std::string_view line) { said = line; });
      throw Stopped("nats-server " + describe_exit(status) + ": " + said);
    }
    if (Clock::now() >= deadline) throw Stopped("nats-server: " + bus.error().message);
  }
  const auto subscribed = [&](const std::string& subject) { return bus_->subscribe(subject).value(); };
  announces_ = subscribed(subjects_.announces());
  heartbeats_ = subscribed(subjects_.heartbeats());
  replies_ = bus_->subscribe_answers(subjects_.replies(self_)).value();
  results_ = subscribed(subjects_.results());
  bus_->flush(kStart).value();
}

int TestFleet::start_worker() {
  WorkerStart start{options_.executable,           "default", kSlots, {"*"}, options_.allow_files,
                    options_.directory / "secrets"};
  Config config;
  config.nats.url = url_;
  config.data_dir = options_.directory;
  auto child = Child::start(worker_command(start, config, Verbosity::kVerbose, options_.env));
  if (!child) throw Stopped(child.error().message);
  const int number = ++started_;
  processes_.push_back({number, std::move(*child)});
  const bool there = until(
      [&] {
        const auto* mine = process(number);
        return mine == nullptr || !refused_.empty() || mine->heard;
      },
      kStart);
  if (!refused_.empty()) throw Stopped(refused_);
  if (process(number) == nullptr) throw Stopped(deaths_.back() + log_tail());
  if (!there) throw Stopped("the worker does not announce itself and heartbeat" + log_tail());
  return number;
}

void TestFleet::have_workers(std::size_t count) {
  while (processes_.size() < count) start_worker();
}

std::vector<int> TestFleet::workers() const {
  std::vector<int> numbers;
  for (const auto& each : processes_) numbers.push_back(each.number);
  return numbers;
}

void TestFleet::kill_worker(int number) {
  std::erase_if(processes_, [&](const Process& each) { return each.number == number; });  // Child's end
  lose(number, "its worker was killed");
}

void TestFleet::give_up() {
  options_.interrupted = [] { return false; };
  if (!bus_) return;
  for (const auto& each : open_) {
    each->claim = Claim::kHold;
    cancel(*each);
  }
  until([&] { return open_.empty(); }, Millis{15'000});
}

void TestFleet::stop() {
  if (!bus_) return;
  for (const auto& each : processes_) each.child.signal(SIGTERM);
  until([&] { return processes_.empty(); }, Millis{15'000});
  deaths_.clear();
  processes_.clear();
  bus_.reset();
  server_.reset();
}

DispatchPtr TestFleet::send(Target target, std::string type, JobOperation operation, std::optional<int> only,
                            Claim claim, Millis lease) {
  auto dispatch = std::make_shared<Dispatch>();
  auto& job = dispatch->job;
  job.fleet = fleet_;
  job.id = JobId(make_ulid(std::chrono::system_clock::now(), random_));
  job.ns = manifest_.ns;
  job.target = std::move(target);
  job.type = std::move(type);
  job.manifest = manifest_hash_;
  job.lease = lease;
  job.deadline = kJobDeadline;
  job.priority = Priority::kCommand;
  job.operation = std::move(operation);
  dispatch->only = only;
  dispatch->claim = claim;
  limiter_.set_rate(job.ns, job.target.id, announcement_.max_requests_per_second, Clock::now());
  publish(dispatch);
  return dispatch;
}

DispatchPtr TestFleet::redeliver(const Dispatch& lost, std::optional<int> only) {
  auto dispatch = std::make_shared<Dispatch>();
  dispatch->job = lost.job;
  ++dispatch->job.attempt;
  dispatch->only = only;
  publish(dispatch);
  return dispatch;
}

void TestFleet::publish(const DispatchPtr& dispatch) {
  auto& job = dispatch->job;
  const auto now = Clock::now();
  open_.insert(dispatch);
  dispatch->again = limiter_.ready_at(job.ns, job.target.id, now);
  if (dispatch->again > now) return;
  dispatch->again = TimePoint::max();
  limiter_.charge(job.ns, job.target.id, 1, now);
  sent_.erase(job.token);
  job.token = Token(make_token(random_));
  dispatch->sent = now;
  sent_[job.token] = dispatch;
  const auto* worker = dispatch->only ? process(*dispatch->only) : nullptr;
  if (dispatch->only && worker == nullptr) return lose(*dispatch->only, "its worker is not there");
  say(worker == nullptr ? subjects_.job(job.ns, kDefaultPool) : subjects_.worker_job(job.ns, worker->id), encode(job),
      subjects_.reply(job.ns, self_, job.token));
}

void TestFleet::cancel(const Dispatch& dispatch) {
  if (const auto* worker = process(dispatch.by)) {
    say(subjects_.worker_control(dispatch.job.ns, worker->id),
        encode(Control{fleet_, Cancel{{dispatch.job.id, dispatch.job.token}}}));
  }
}

const JobResult& TestFleet::wait(const DispatchPtr& dispatch, Millis patience) {
  if (!until([&] { return dispatch->result.has_value(); }, patience)) {
    open_.erase(dispatch);
    sent_.erase(dispatch->job.token);
    dispatch->result = Error{
        Errc::kTimeout, dispatch->accepted ? "the worker does not answer the job" : "no worker takes the job", {}, 0};
  }
  return *dispatch->result;
}

JobResult TestFleet::run(const Target& target, const std::string& type, const JobOperation& operation,
                         std::optional<int> only) {
  return finish(target, type, operation, wait(send(target, type, operation, only)), only);
}

JobResult TestFleet::finish(const Target& target, const std::string& type, const JobOperation& operation,
                            JobResult result, std::optional<int> only) {
  const auto deadline = Clock::now() + kJobDeadline;
  JobOperation next = operation;
  while (Clock::now() < deadline) {
    const auto* error = std::get_if<Error>(&result);
    const auto* change = std::get_if<MutationResult>(&result);
    if (error != nullptr && error->code == Errc::kThrottling) {
      pause(std::max(error->retry_after, kPoll));
    } else if (change != nullptr && change->status != MutationStatus::kSuccess) {
      pause(std::max(change->retry_after, kPoll));
      auto request = change->request_id;
      if (const auto* before = std::get_if<StatusJob>(&next); request.empty() && before != nullptr)
        request = before->request_id;
      next = StatusJob{request, change->native_id};
    } else {
      break;
    }
    result = wait(send(target, type, next, only));
  }
  return result;
}

bool TestFleet::until(const std::function<bool()>& done, Millis patience) {
  const auto deadline = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    turn(deadline);
  }
  return true;
}

void TestFleet::pause(Millis time) {
  until([] { return false; }, time);
}

std::pair<int, std::string> TestFleet::shell(const Command& command) {
  auto child = Child::start(command);
  if (!child) return {-1, child.error().message};
  std::string said;
  int status = 0;
  const auto keep = [&](std::string_view line) { said += std::string(line) + "\n"; };
  const bool ended = until(
      [&] {
        child->read_lines(keep);
        return child->ended(status);
      },
      kJobDeadline);
  child->read_rest(keep);
  return {ended ? status : -1, ended ? said : "does not end"};
}

std::string TestFleet::log_tail() const {
  std::string text = log_.empty() ? "; it logged nothing" : "; it logged:";
  for (std::size_t i = log_.size() - std::min<std::size_t>(log_.size(), 5); i < log_.size(); ++i)
    text += "\n  " + log_[i];
  return text;
}

void TestFleet::turn(TimePoint until) {
  if (options_.interrupted()) throw Stopped("interrupted");
  auto wake = std::min(until, Clock::now() + kTurn);
  for (const auto& each : open_) wake = std::min(wake, each->again);
  bus_->wait(wake);
  receive();
  watch();
  const auto now = Clock::now();
  std::vector<DispatchPtr> due;
  for (const auto& each : open_) {
    if (each->again <= now) due.push_back(each);
  }
  for (const auto& each : due) publish(each);
}

void TestFleet::say(const std::string& subject, Bytes data, const std::string& reply) {
  if (const auto said = bus_->publish({subject, reply, std::move(data), {}}); !said)
    throw Stopped(said.error().message);
}

TestFleet::Process* TestFleet::process(int number) {
  for (auto& each : processes_) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

TestFleet::Process* TestFleet::process_of(const WorkerId& id) {
  for (auto& each : processes_) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

}  // namespace muster::cli::conformance
