#include "connection.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "worker_sdk/bus/nats_bus.h"
#include "worker_sdk/bus/nats_url.h"
#include "worker_sdk/bus/nkey.h"
#include "worker_sdk/bus/sign_in_file.h"

namespace muster::nats {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kConnectTimeout{2000};  // to one server
constexpr Millis kSilence{10'000};       // beyond that; a name may stand for several addresses
constexpr int kMostAttempts = 64;        // under way, of this process
constexpr Millis kRequestTimeout{10'000};
constexpr Millis kWriteTimeout{4000};  // of a server that takes nothing more; stopping does not end such a wait
constexpr Millis kLook{20};            // at cancellation and refusals, while an answer is awaited
// The client drops a signature whose first byte is zero, one in 256: such a refusal says nothing of the credentials.
constexpr int kSignedTries = 3;

using InboxPtr = std::unique_ptr<natsInbox, NatsDestroy<natsInbox_Destroy>>;

std::string text_of(natsStatus status) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = natsStatus_GetText(status);
  if (detail != nullptr && *detail != '\0') text.append(": ").append(detail);
  return text;
}

Error refused(natsStatus status, const std::string& url, const std::string& text) {
  // What cannot be understood cannot be redacted either: it is not repeated.
  if (status == NATS_INVALID_ARG || status == NATS_ADDRESS_MISSING) {
    return invalid_request("config.url: expected nats://host:port or tls://host:port, several with commas");
  }
  const std::string message = redact_url(url) + ": " + text;
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
      return access_denied(message);
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SSL_ERROR:
      return invalid_request(message);
    default:
      return unavailable(message);
  }
}

Result<void> set_login(natsOptions* to, const BusAccess& server) {
  natsStatus status = NATS_OK;
  if (!server.creds.empty()) {
    // The library reads them only while it connects, and then takes a missing file for a missing server.
    if (auto readable = read_sign_in_file(server.creds); !readable) return readable.error();
    status = natsOptions_SetUserCredentialsFromFiles(to, server.creds.c_str(), nullptr);
  } else if (!server.nkey_seed.empty()) {
    const auto seed = read_sign_in_file(server.nkey_seed);
    if (!seed) return seed.error();
    const auto key = nkey_public_of_seed(*seed);
    if (!key) return invalid_request(server.nkey_seed + ": " + key.error().message);
    status = natsOptions_SetNKeyFromSeed(to, key->c_str(), server.nkey_seed.c_str());
  }
  if (status != NATS_OK) return invalid_request("login: " + text_of(status));
  return {};
}

Result<void> set_tls(natsOptions* to, const BusAccess& server, const std::vector<std::string>& servers) {
  natsStatus status = NATS_OK;
  if (!server.tls_ca.empty() || !server.tls_cert.empty() || wants_tls(servers))
    status = natsOptions_SetSecure(to, true);
  if (status == NATS_OK && !server.tls_ca.empty()) {
    status = natsOptions_LoadCATrustedCertificates(to, server.tls_ca.c_str());
  }
  if (status == NATS_OK && !server.tls_cert.empty()) {
    status = natsOptions_LoadCertificatesChain(to, server.tls_cert.c_str(), server.tls_key.c_str());
  }
  if (status != NATS_OK) return invalid_request("tls: " + text_of(status));
  return {};
}

/// The library prints to stderr what nobody takes; request() asks the connection for its last error instead.
void ignore_error(natsConnection*, natsSubscription*, natsStatus, void*) noexcept {}

Result<OptionsPtr> make_options(const BusAccess& server, Millis left) {
  natsOptions* raw = nullptr;
  natsStatus status = natsOptions_Create(&raw);
  OptionsPtr options(raw);
  const auto also = [&status](natsStatus next) { status = status == NATS_OK ? next : status; };
  const auto servers = split_servers(server.url);
  std::vector<const char*> list;
  for (const auto& it : servers) list.push_back(it.c_str());
  if (status == NATS_OK) status = natsOptions_SetServers(raw, list.data(), static_cast<int>(list.size()));
  also(natsOptions_SetName(raw, "muster-plugin-nats"));
  also(natsOptions_SetTimeout(raw, std::clamp(left, Millis{1}, kConnectTimeout).count()));
  also(natsOptions_SetAllowReconnect(raw, false));
  also(natsOptions_SetSendAsap(raw, true));
  also(natsOptions_SetWriteDeadline(raw, std::clamp(left, Millis{1}, kWriteTimeout).count()));
  also(natsOptions_SetErrorHandler(raw, ignore_error, nullptr));
  if (status != NATS_OK) return refused(status, server.url, text_of(status));
  if (auto set = set_login(raw, server); !set) return set.error();
  if (auto set = set_tls(raw, server, servers); !set) return set.error();
  return options;
}

Error cancelled() {
  return failure(Errc::kCancelled, "cancelled");
}

/// A try to connect.
struct Attempt {
  std::mutex mutex{};
  std::condition_variable_any changed{};
  bool ended = false;  // what follows is known
  natsStatus status = NATS_OK;
  std::string text{};
  ConnectionPtr connection{};
};

void connect(Attempt& attempt, natsOptions* options) {
  natsConnection* raw = nullptr;
  const natsStatus status = natsConnection_Connect(&raw, options);
  ConnectionPtr connection(raw);
  std::string text = text_of(status);  // which is this thread's
  const std::lock_guard lock(attempt.mutex);
  attempt.status = status;
  attempt.text = std::move(text);
  attempt.connection = std::move(connection);
  attempt.ended = true;
  attempt.changed.notify_all();
}

/// Begins a try on a thread of its own, for the library waits without end for a server that falls silent in the
/// handshake. Where too many of them wait the job does so itself: its worker knows what to do with it.
std::shared_ptr<Attempt> begin_attempt(OptionsPtr options) {
  static std::atomic<int> going = 0;
  auto attempt = std::make_shared<Attempt>();
  const std::shared_ptr<natsOptions> shared = std::move(options);
  if (going.fetch_add(1) < kMostAttempts) {
    try {
      std::thread([attempt, shared] {
        connect(*attempt, shared.get());
        --going;
      }).detach();
      return attempt;
    } catch (const std::system_error&) {  // no thread is left
    }
  }
  --going;
  connect(*attempt, shared.get());
  return attempt;
}

}  // namespace

Result<Connection> Connection::open(const BusAccess& server, JobContext& context) {
  const bool is_signed = !server.creds.empty() || !server.nkey_seed.empty();
  const auto stop = context.stop_token();
  natsStatus status = NATS_OK;
  std::string text;
  for (int i = 0; i < (is_signed ? kSignedTries : 1); ++i) {
    if (stop.stop_requested()) return cancelled();
    const auto left = std::chrono::duration_cast<Millis>(context.deadline() - Clock::now());
    auto options = make_options(server, left);
    if (!options) return options.error();
    const auto servers = static_cast<Millis::rep>(split_servers(server.url).size());
    const auto until = std::min(context.deadline(), Clock::now() + servers * kConnectTimeout + kSilence);
    const auto attempt = begin_attempt(std::move(*options));
    std::unique_lock lock(attempt->mutex);
    if (!attempt->changed.wait_until(lock, stop, until, [&] { return attempt->ended; })) {
      if (stop.stop_requested()) return cancelled();
      return unavailable(redact_url(server.url) + ": no end of the handshake in time");
    }
    status = attempt->status;
    text = std::move(attempt->text);
    if (status == NATS_OK) return Connection(std::move(attempt->connection), context);
    if (status != NATS_CONNECTION_AUTH_FAILED) break;
  }
  return refused(status, server.url, text);
}

Result<std::string> Connection::request(const std::string& subject, const std::string& body) {
  context_->count_calls(1);
  const auto lost = [&](natsStatus status) { return failure(Errc::kNetwork, subject + ": " + text_of(status)); };
  natsInbox* raw_inbox = nullptr;
  natsSubscription* raw_subscription = nullptr;
  natsStatus status = natsInbox_Create(&raw_inbox);
  const InboxPtr inbox(raw_inbox);
  if (status == NATS_OK) status = natsConnection_SubscribeSync(&raw_subscription, connection_.get(), raw_inbox);
  const SubscriptionPtr subscription(raw_subscription);
  if (status == NATS_OK) {
    status = natsConnection_PublishRequest(connection_.get(), subject.c_str(), raw_inbox, body.data(),
                                           static_cast<int>(body.size()));
  }
  if (status == NATS_MAX_PAYLOAD) {  // nothing was sent, and no other try would be
    return failure(Errc::kLimit,
                   subject + ": " + std::to_string(body.size()) + " bytes are more than the server takes");
  }
  if (status != NATS_OK) return lost(status);

  const auto until = std::min(context_->deadline(), Clock::now() + kRequestTimeout);
  for (;;) {
    if (context_->stop_token().stop_requested()) return cancelled();
    natsMsg* raw = nullptr;
    status = natsSubscription_NextMsg(&raw, raw_subscription, kLook.count());
    const MsgPtr message(raw);
    if (status == NATS_NO_RESPONDERS || (status == NATS_OK && natsMsg_IsNoResponders(raw))) {
      return failure(Errc::kNoResponders, subject + ": nobody answers");
    }
    if (status == NATS_OK) {
      return std::string(natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw)));
    }
    const char* ignored = nullptr;  // belongs to the library's reader, who may be writing it
    if (natsConnection_GetLastError(connection_.get(), &ignored) == NATS_NOT_PERMITTED) {
      return access_denied(subject + ": the user may not publish there, or not subscribe to its inbox");
    }
    if (status != NATS_TIMEOUT) return lost(status);
    if (Clock::now() >= until) return failure(Errc::kTimeout, subject + ": no answer in time");
  }
}

}  // namespace muster::nats
