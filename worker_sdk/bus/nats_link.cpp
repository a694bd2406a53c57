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
  constexpr std::string_view kNothing = ": (null)";  // where OpenSSL has no reason to give
  if (text.ends_with(kNothing)) text.resize(text.size() - kNothing.size());
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
    const Result<std::string> text = read_sign_in_file(options.creds);
    if (!text) return text.error();
    constexpr int kFrames = 4;  // where JWT and seed begin and end
    int frames = text->starts_with("---") ? 1 : 0;
    for (std::size_t at = 0; (at = text->find("\n---", at)) != std::string::npos; ++at) ++frames;
    if (frames < kFrames) {
      return Error{Errc::kInvalidRequest, options.creds + ": holds no user JWT with its seed, as `nsc` writes them"};
    }
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

/// The library does not say why it cannot read one, and OpenSSL asks whoever sits at the terminal for a pass phrase,
/// without end.
Result<void> check_tls_files(const NatsOptions& options) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;  // a bundle of all authorities has a quarter of one
  for (const std::string* path : {&options.tls_ca, &options.tls_cert, &options.tls_key}) {
    if (path->empty()) continue;
    const Result<std::string> text = read_sign_in_file(*path, kMaxBytes);
    if (!text) return text.error();
    const bool encrypted = text->find("-----BEGIN ENCRYPTED PRIVATE KEY-----") != std::string::npos ||
                           text->find("Proc-Type: 4,ENCRYPTED") != std::string::npos;
    if (path == &options.tls_key && encrypted) {
      return Error{Errc::kInvalidRequest,
                   *path +
                       ": the key has a pass phrase, which nobody could enter: take one without (openssl pkey -in " +
                       *path + " -out NEW)"};
    }
  }
  return {};
}

/// errors   kInvalidRequest: a file cannot be read or understood
Result<void> set_tls(natsOptions* to, const NatsOptions& options) {
  if (auto checked = check_tls_files(options); !checked) return checked.error();
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

/// A server that wants a certificate of its clients ends the connection without a word of it.
Error with_tls_remedy(Error error, const NatsOptions& options, bool tls) {
  const auto says = [&](std::string_view text) { return error.message.find(text) != std::string::npos; };
  if (!tls || error.code != Errc::kDisconnected || !(says("in the handshake") || says("SSL_"))) return error;
  error.message += options.tls_cert.empty() ? "; it may want a certificate (nats.tls.cert)"
                                            : "; it may not accept the certificate " + options.tls_cert;
  return error;
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
                                                 const std::string& host, std::shared_ptr<LinkContext> context) {
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
    if (!host.empty()) natsOptions_SetExpectedHostname(to.get(), host.c_str());
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
  if (status != NATS_OK) return with_tls_remedy(library_error(status), options, link->tls_);
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
