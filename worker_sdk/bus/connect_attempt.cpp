#include "worker_sdk/bus/connect_attempt.h"

#include <pthread.h>

#include <algorithm>

#include "worker_sdk/bus/nats_url.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kGrace{1};
constexpr Millis kBreakEvery{20};  // the library goes on to the next server

}  // namespace

ConnectAttempt::ConnectAttempt(NatsOptions options, std::vector<std::string> servers, std::vector<std::string> learned,
                               std::shared_ptr<LinkContext> context)
    : context_(std::move(context)),
      deadline_(std::chrono::steady_clock::now() + options.connect_timeout * (learned.empty() ? 1 : 2) + kGrace) {
  for (const std::string& server : servers) ports_.push_back(port_of(server));
  for (const std::string& server : learned) ports_.push_back(port_of(server));
  thread_ =
      std::thread([this, options = std::move(options), servers = std::move(servers), learned = std::move(learned)] {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);  // but for the call that may hang
        run(options, servers, learned);
      });
}

ConnectAttempt::~ConnectAttempt() {
  bool ended = wait(std::min(deadline_, std::chrono::steady_clock::now() + kGrace));
  for (const auto until = std::chrono::steady_clock::now() + kGrace; !ended && std::chrono::steady_clock::now() < until;
       ended = wait(std::chrono::steady_clock::now() + kBreakEvery)) {
    before_.shut_down_later_ones(ports_);
  }
  if (!ended) pthread_cancel(thread_.native_handle());
  thread_.join();
}

void ConnectAttempt::run(const NatsOptions& options, const std::vector<std::string>& servers,
                         const std::vector<std::string>& learned) {
  auto link = NatsLink::open(options, servers, {}, context_);
  if (!link && link.error().code == Errc::kDisconnected && !learned.empty()) {
    // They are told by address, which no certificate names.
    if (auto other = NatsLink::open(options, learned, host_of(servers.front()), context_)) link = std::move(other);
  }
  const std::lock_guard lock(mutex_);
  outcome_ = std::move(link);
  ended_.notify_all();
  context_->waker.wake();
}

bool ConnectAttempt::wait(TimePoint until) {
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, until, [this] { return outcome_.has_value(); });
}

std::optional<Result<std::unique_ptr<NatsLink>>> ConnectAttempt::outcome(TimePoint until) {
  if (wait(std::min(until, deadline_))) return std::move(outcome_);
  if (std::chrono::steady_clock::now() < deadline_) return std::nullopt;
  return Result<std::unique_ptr<NatsLink>>(Error{Errc::kDisconnected, "the server fell silent in the handshake"});
}

}  // namespace muster
