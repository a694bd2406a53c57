#include "worker_sdk/bus/nats_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "worker_sdk/bus/nats_url.h"
#include "worker_sdk/bus/nkey.h"
#include "worker_sdk/bus/sign_in_file.h"

namespace muster {
namespace {

constexpr std::int64_t kServerTimeoutMillis = 10'000;  // to connect to one server, at most
constexpr std::int64_t kPingMillis = 5000;
constexpr int kIoBufferBytes = 128 << 10;
constexpr int kRecordsPerRead = 8;
constexpr int kStuckReads = 250;  // a millisecond apart: a record that is not whole by then may lack room for its rest
constexpr int kRoomBytes = 512 << 10;        // to receive in; the kernel gives what it allows
constexpr unsigned kUnackedMillis = 15'000;  // the kernel breaks a connection off whose peer takes nothing for so long

/// The loop judges silence itself: a connection that the timer thread closes would pull the socket from under read().
constexpr int kNeverStale = std::numeric_limits<int>::max();

/// The library's details begin with where in its source they arose: `(conn.c:2088): `.
std::string_view without_place(std::string_view detail) {
  const auto end = detail.find("): ");
  return detail.substr(0, 1) == "(" && end != std::string_view::npos ? detail.substr(end + 3) : detail;
}

Error library_error(natsStatus status) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = natsStatus_GetText(status);
  const std::string_view more = without_place(detail == nullptr ? "" : detail);
  if (more == "Expected 'PONG', got ''") {
    return {Errc::kDisconnected, "the server ended the connection in the handshake, or did not answer in time"};
  }
  if (!more.empty() && more != text) text.append(": ").append(more);
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
      return {Errc::kAccessDenied, std::move(text)};
    case NATS_INVALID_ARG:
      return {Errc::kInvalidRequest, std::move(text)};
    default:
      return {Errc::kDisconnected, std::move(text)};
  }
}

const char* or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

natsStatus set_servers(natsOptions* to, const std::vector<std::string>& servers) {
  std::vector<const char*> list;
  for (const std::string& server : servers) list.push_back(server.c_str());
  return natsOptions_SetServers(to, list.data(), static_cast<int>(list.size()));
}

/// errors   kInvalidRequest: a file cannot be read or understood
Result<void> set_credentials(natsOptions* to, const NatsOptions& options) {
  natsStatus status = NATS_OK;
  if (!options.creds.empty()) {
    // The library reads them only while it connects, and then takes a missing file for a missing server.
    if (auto readable = read_sign_in_file(options.creds); !readable) return readable.error();
    status = natsOptions_SetUserCredentialsFromFiles(to, options.creds.c_str(), nullptr);
  } else if (!options.nkey_seed.empty()) {
    const Result<std::string> text = read_sign_in_file(options.nkey_seed);
    if (!text) return text.error();
    const Result<std::string> key = nkey_public_of_seed(*text);
    if (!key) return Error{Errc::kInvalidRequest, options.nkey_seed + ": " + key.error().message};
    status = natsOptions_SetNKeyFromSeed(to, key->c_str(), options.nkey_seed.c_str());
  }
  if (status != NATS_OK) return Error{Errc::kInvalidRequest, library_error(status).message};
  return {};
}

bool uses_tls(const NatsOptions& options, const std::vector<std::string>& servers) {
  return !options.tls_ca.empty() || !options.tls_cert.empty() || wants_tls(servers);
}

/// errors   kInvalidRequest: a file cannot be read or understood
Result<void> set_tls(natsOptions* to, const NatsOptions& options) {
  natsStatus status = natsOptions_SetSecure(to, true);
  if (status == NATS_OK && !options.tls_ca.empty()) {
    status = natsOptions_LoadCATrustedCertificates(to, options.tls_ca.c_str());
  }
  if (status == NATS_OK && !options.tls_cert.empty()) {
    status = natsOptions_LoadCertificatesChain(to, options.tls_cert.c_str(), options.tls_key.c_str());
  }
  if (status != NATS_OK) return Error{Errc::kInvalidRequest, "TLS: " + library_error(status).message};
  return {};
}

natsStatus set_behaviour(natsOptions* to, const NatsOptions& options, const std::vector<std::string>& servers) {
  const auto per_server = options.connect_timeout.count() / static_cast<std::int64_t>(servers.size());
  natsStatus status = set_servers(to, servers);
  const auto also = [&status](natsStatus next) { status = status == NATS_OK ? next : status; };
  also(natsOptions_SetName(to, or_null(options.name)));
  also(natsOptions_SetTimeout(to, std::clamp<std::int64_t>(per_server, 100, kServerTimeoutMillis)));
  also(natsOptions_SetAllowReconnect(to, false));
  also(natsOptions_SetSendAsap(to, true));
  also(natsOptions_UseGlobalMessageDelivery(to, true));  // one thread, not one per subscription
  also(natsOptions_SetIOBufSize(to, kIoBufferBytes));
  also(natsOptions_SetPingInterval(to, kPingMillis));
  also(natsOptions_SetMaxPingsOut(to, kNeverStale));
  return status;
}

}  // namespace

void AsyncErrors::note(std::string text) {
  const std::lock_guard lock(mutex_);
  ++count_;
  last_ = std::move(text);
}

std::uint64_t AsyncErrors::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

std::string AsyncErrors::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

/// Closure of the callbacks that come on the library's own thread. The closed callback is the last of a connection and
/// frees it, so that none finds it gone, however late it comes.
struct NatsLink::Callbacks {
  std::shared_ptr<LinkContext> context;
  std::promise<void> closed;

  static void on_error(natsConnection* connection, natsSubscription*, natsStatus status, void* closure) noexcept {
    const auto& context = static_cast<Callbacks*>(closure)->context;
    const char* said = nullptr;  // by the server, of a missing permission
    natsConnection_GetLastError(connection, &said);
    context->errors.note(said != nullptr && *said != '\0' ? said : library_error(status).message);
    context->waker.wake();
  }

  static void on_closed(natsConnection*, void* closure) noexcept {
    const std::unique_ptr<Callbacks> own(static_cast<Callbacks*>(closure));
    own->closed.set_value();
  }
};

Result<std::unique_ptr<NatsLink>> NatsLink::open(const NatsOptions& options, const std::vector<std::string>& servers,
                                                 std::shared_ptr<LinkContext> context) {
  natsOptions* raw_options = nullptr;
  natsStatus status = natsOptions_Create(&raw_options);
  const OptionsPtr to(raw_options);
  if (status == NATS_OK) status = set_behaviour(to.get(), options, servers);
  if (status != NATS_OK) return Error{Errc::kInvalidRequest, library_error(status).message};
  if (auto set = set_credentials(to.get(), options); !set) return set.error();

  std::unique_ptr<NatsLink> link(new NatsLink(context));
  link->tls_ = uses_tls(options, servers);
  if (link->tls_) {
    if (auto set = set_tls(to.get(), options); !set) return set.error();
  }
  auto callbacks = std::make_unique<Callbacks>(Callbacks{std::move(context), {}});
  natsOptions_SetEventLoop(to.get(), link.get(), on_attach, on_read_interest, on_write_interest, on_detach);
  natsOptions_SetErrorHandler(to.get(), Callbacks::on_error, callbacks.get());
  natsOptions_SetClosedCB(to.get(), Callbacks::on_closed, callbacks.get());

  natsConnection* connection = nullptr;
  int cancel_state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
  status = natsConnection_Connect(&connection, to.get());
  pthread_setcancelstate(cancel_state, nullptr);
  if (status != NATS_OK) return library_error(status);
  link->connection_.reset(connection);
  link->closed_ = callbacks->closed.get_future();
  [[maybe_unused]] const Callbacks* freed_by_on_closed = callbacks.release();
  return link;
}

NatsLink::~NatsLink() {
  close(Millis{0});
}

void NatsLink::close(Millis timeout) {
  if (!connection_) return;
  natsConnection_Close(connection_.get());
  closed_.wait_for(timeout);
  connection_.reset();
}

bool NatsLink::readable() const {
  if (tls_) {
    const Record next = next_record();
    return next == Record::kWhole || next == Record::kBroken;
  }
  pollfd socket{socket_, POLLIN, 0};
  return ::poll(&socket, 1, 0) > 0;
}

bool NatsLink::read() {
  if (!tls_) {
    natsConnection_ProcessReadEvent(connection_.get());
    return true;
  }
  int records = 0;
  Record next = next_record();
  while (next == Record::kWhole && !lost() && records++ < kRecordsPerRead) {
    natsConnection_ProcessReadEvent(connection_.get());
    if (!lost()) next = next_record();
  }
  if (next == Record::kBroken && records == 0) natsConnection_ProcessReadEvent(connection_.get());
  awaits_record_ = next == Record::kPart;
  parts_in_a_row_ = awaits_record_ && records == 0 ? parts_in_a_row_ + 1 : 0;
  if (parts_in_a_row_ == kStuckReads) make_room();
  return records > 0;
}

/// The kernel counts the memory of a segment until all of it is read. Behind a large one that is read but for the
/// begin of a record, the next may find no room: its sender tries in vain, and both wait for ever.
void NatsLink::make_room() const {
  int room = 0;
  socklen_t size = sizeof room;
  const bool known = ::getsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, &size) == 0;
  if (known && room < kRoomBytes) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &kRoomBytes, sizeof kRoomBytes);
}

/// The library would wait without end for the rest of a TLS record, and the loop with it.
NatsLink::Record NatsLink::next_record() const {
  std::array<unsigned char, 5> header{};  // type, version (2), length (2)
  const auto size = static_cast<int>(header.size());
  const auto peeked = ::recv(socket_, header.data(), header.size(), MSG_PEEK | MSG_DONTWAIT);
  if (peeked < 0 && (errno == EAGAIN || errno == EINTR)) return Record::kNone;
  if (peeked <= 0) return Record::kBroken;
  if (peeked < size) return Record::kPart;
  int available = 0;
  ::ioctl(socket_, FIONREAD, &available);
  return available >= size + (header[3] << 8 | header[4]) ? Record::kWhole : Record::kPart;
}

void NatsLink::break_off() const {
  ::shutdown(socket_, SHUT_RDWR);
}

std::size_t NatsLink::max_payload() const {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, natsConnection_GetMaxPayload(connection_.get())));
}

std::string NatsLink::last_error() const {
  const char* text = nullptr;
  natsConnection_GetLastError(connection_.get(), &text);
  return text == nullptr ? std::string() : std::string(text);
}

std::vector<std::string> NatsLink::discovered_servers() const {
  char** list = nullptr;
  int count = 0;
  std::vector<std::string> servers;
  if (natsConnection_GetDiscoveredServers(connection_.get(), &list, &count) != NATS_OK) return servers;
  for (int i = 0; i < count; ++i) {
    servers.emplace_back(list[i]);
    std::free(list[i]);
  }
  std::free(list);
  return servers;
}

natsStatus NatsLink::on_attach(void** user, void* loop, natsConnection*, natsSock socket) noexcept {
  auto* link = static_cast<NatsLink*>(loop);
  *user = link;
  link->socket_ = socket;
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnackedMillis, sizeof kUnackedMillis);
  return NATS_OK;
}

/// The library stops reading when it gives the connection up, and only then.
natsStatus NatsLink::on_read_interest(void* user, bool add) noexcept {
  if (!add) static_cast<NatsLink*>(user)->socket_ = -1;
  return NATS_OK;
}

natsStatus NatsLink::on_write_interest(void* user, bool add) noexcept {
  auto* link = static_cast<NatsLink*>(user);
  link->wants_write_ = add;
  if (add) link->context_->waker.wake_if_asleep();
  return NATS_OK;
}

natsStatus NatsLink::on_detach(void*) noexcept {
  return NATS_OK;
}

}  // namespace muster
