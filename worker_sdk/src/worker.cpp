#include <sodium.h>
#include <spdlog/logger.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "command_line.h"
#include "executor.h"
#include "journal.h"
#include "muster/worker.h"
#include "stop_signals.h"
#include "worker_core.h"
#include "worker_sdk/bus/drain.h"
#include "worker_sdk/bus/stderr_log.h"

namespace muster {
namespace {

constexpr std::size_t kBatch = 256;  // messages handled in one turn of the loop
constexpr Millis kConnectAgain{1000};
constexpr Millis kCloseTimeout{1000};
constexpr std::chrono::seconds kExitLimit{2};  // for destructors and threads of the plugin

/// Connects, trying again while the server is not there. Null: a signal came, or there is no use in trying.
std::unique_ptr<NatsBus> connect(const NatsOptions& options, const StopSignals& signals,
                                 const std::shared_ptr<spdlog::logger>& log) {
  RepeatedReason reason;
  for (int failures = 0; !signals.came(); ++failures) {
    auto bus = NatsBus::connect(with_patience(options, failures), log);
    if (bus) return std::move(*bus);
    if (bus.error().code != Errc::kDisconnected) {
      log->error("cannot connect: {}", bus.error().message);
      return nullptr;
    }
    if (reason.is_news(bus.error().message)) log->warn("cannot connect, trying again: {}", bus.error().message);
    for (Millis waited{0}; waited < kConnectAgain && !signals.came(); waited += Millis{50}) {
      std::this_thread::sleep_for(Millis{50});
    }
  }
  return nullptr;
}

const char* supervisor() {
  return std::getenv("MUSTER_SUPERVISOR");
}

/// Ends with the supervisor. It has asked the kernel for that itself, which forgets it where the executable brings its
/// own user or group, and a script between the two has it for itself alone.
void end_with_supervisor() {
  const char* pid = supervisor();
  if (pid == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool gone = kill(std::atoi(pid), 0) != 0 && errno == ESRCH;
  if (gone) throw std::runtime_error("the supervisor that started this worker is gone");
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

bool changes_anything(const Plugin& plugin) {
  const Manifest manifest = plugin.manifest();
  return std::any_of(manifest.types.begin(), manifest.types.end(), [](const TypeDescriptor& type) {
    return std::any_of(type.operations.begin(), type.operations.end(), [](Operation operation) {
      return operation == Operation::kCreate || operation == Operation::kUpdate || operation == Operation::kDelete;
    });
  });
}

/// Null where there is none: the worker serves all but changes.
std::shared_ptr<Journal> open_journal(const Plugin& plugin, const WorkerOptions& options, const WorkerId& worker,
                                      const std::shared_ptr<spdlog::logger>& log) {
  if (!changes_anything(plugin)) return nullptr;
  const auto pool = options.state_dir / options.prefix / plugin.info().ns / options.pool;
  auto journal = FileJournal::open(pool, worker, log);
  if (journal) return std::move(*journal);
  log->error(
      "refuses all changes, for their results cannot be kept: {}. Start the worker again with a directory that it may "
      "write: --state-dir, or MUSTER_STATE_DIR",
      journal.error().message);
  return nullptr;
}

WorkerCore::Options core_options(const Plugin& plugin, const WorkerOptions& options, const Clock& clock, Random& random,
                                 const std::shared_ptr<spdlog::logger>& log) {
  const WorkerId id(options.id.empty() ? make_token(random) : options.id);
  return {.subjects = Subjects(options.prefix),
          .id = id,
          .pool = options.pool,
          .slots = options.slots,
          .host = host_name(),
          .pid = static_cast<std::uint32_t>(getpid()),
          .started = clock.wall(),
          .secrets = options.secrets,
          .journal = open_journal(plugin, options, id, log),
          .clock = &clock};
}

/// The loop: what has come, what has ended, what is due.
void run_loop(WorkerCore& core, NatsBus& bus, ThreadExecutor& executor, const StopSignals& signals,
              const Clock& clock) {
  LoopCalls& calls = *executor.calls();
  std::vector<Message> batch;
  while (!core.ended()) {
    bus.wait(std::min(core.next_due(), calls.next_due()));
    batch.clear();
    bus.receive(batch, kBatch);
    const TimePoint now = clock.now();
    for (const Message& message : batch) core.handle(message, now);
    calls.run(now);
    executor.start();
    for (auto& finished : executor.take()) core.complete(finished.token, std::move(finished.outcome), now);
    if (signals.came()) core.drain(now, kDrainLimit);
    core.tick(now);
    executor.start();
  }
}

int serve(const Plugin& plugin, const WorkerOptions& options, const std::shared_ptr<spdlog::logger>& log) {
  using Second = StopSignals::Second;
  StopSignals signals(supervisor() == nullptr ? Second::kEnds : Second::kSaysTheSame);
  const std::unique_ptr<NatsBus> bus = connect(options.nats, signals, log);
  if (!bus) return signals.came() ? 0 : 1;
  signals.wake(bus.get());
  const SystemClock clock;
  SystemRandom random;
  ThreadExecutor executor(options.slots + 1U, [&] { bus->wake(); });  // one for the functions of the plugin's life
  WorkerCore core(core_options(plugin, options, clock, random, log), plugin, *bus, random, executor, log);
  if (auto started = core.start(clock.now()); !started) {
    log->error("cannot subscribe: {}", started.error().message);
    return 1;
  }
  executor.start();
  run_loop(core, *bus, executor, signals, clock);

  signals.wake(nullptr);
  const int status = core.state() == WorkerCore::State::kDrained ? 0 : 1;
  static_cast<void>(bus->flush(kCloseTimeout));  // a server that has gone away cannot be told good-bye
  bus->close(kCloseTimeout);
  end_process_within(kExitLimit, status);  // what a slot's thread does beyond its job is waited for below
  if (core.runs_plugin_code()) {           // its threads cannot be ended, only left behind
    log->flush();
    std::_Exit(status);
  }
  return status;
}

}  // namespace

int Worker::run(int argc, char** argv) {
  hold_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit of the process fails that job, not the worker
  try {
    const auto parsed = parse_command_line(argc, argv, *this);
    if (const int* status = std::get_if<int>(&parsed)) return *status;
    const auto& options = std::get<WorkerOptions>(parsed);
    const NatsOptions& nats = options.nats;
    bus_ = {nats.url, nats.creds, nats.nkey_seed, nats.tls_ca, nats.tls_cert, nats.tls_key};
    if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
    dup2(STDERR_FILENO, STDOUT_FILENO);  // whatever plugin code prints goes where the log goes
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    end_with_supervisor();
    const char* no_color = std::getenv("NO_COLOR");
    const bool plain = no_color != nullptr && *no_color != '\0';
    const int status = serve(*this, options, stderr_log(info().name, options.log_level, plain));
    end_process_within(kExitLimit, status);
    nats_library_close();
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster-plugin-%s: %s\n", info().name.c_str(), error.what());
    return 1;
  }
}

}  // namespace muster
