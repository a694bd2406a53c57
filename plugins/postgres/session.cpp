#include "session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <future>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlstate.h"

namespace muster::postgres {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kConnectTimeout[] = "10";
constexpr Millis kStatementTimeout{60'000};
constexpr Millis kLongestTimeout{std::numeric_limits<int>::max()};
constexpr Millis kCancelPatience{1000};
constexpr int kMostCancels = 16;  // under way, of this process
/// What values look like in expressions that the server prints.
constexpr auto kSpellings = std::to_array<std::pair<const char*, const char*>>({
    {"TimeZone", "UTC"},
    {"DateStyle", "ISO, MDY"},
    {"IntervalStyle", "postgres"},
    {"bytea_output", "hex"},
    {"extra_float_digits", "1"},
});
constexpr std::string_view kBytes = "SQL_ASCII";
constexpr std::string_view kDependents = "2BP01";
constexpr std::string_view kInUse = "55006";
constexpr char kNoDatabase[] = "3D000";
constexpr char kNoConnections[] = "55000";  // on connecting: ALLOW_CONNECTIONS false, or a half-dropped database

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  void operator()(PGcancel* cancel) const { PQfreeCancel(cancel); }
  void operator()(char* text) const { PQfreemem(text); }
};
using ResultPtr = std::unique_ptr<PGresult, Clear>;
using OptionsPtr = std::unique_ptr<PQconninfoOption, Clear>;
using CancelPtr = std::unique_ptr<PGcancel, Clear>;

std::string_view option(const OptionsPtr& options, std::string_view keyword) {
  for (const auto* it = options.get(); it != nullptr && it->keyword != nullptr; ++it) {
    if (it->keyword == keyword) return it->val == nullptr ? "" : it->val;
  }
  return "";
}

/// Whether a URI has an `@` behind its first `/`. As part of a password, which libpq then takes for a host or for a
/// database, it looks like that of a database's name; both can be percent-encoded.
bool sign_behind_slash(std::string_view dsn) {
  if (!dsn.starts_with("postgresql://") && !dsn.starts_with("postgres://")) return false;
  dsn.remove_prefix(dsn.find("://") + 3);
  dsn = dsn.substr(0, dsn.find('?'));
  const auto slash = dsn.find('/');
  return slash != dsn.npos && dsn.find('@', slash) != dsn.npos;
}

/// libpq's own messages about a dsn that it cannot take apart quote it, password and all: they are not used. A password
/// with an unescaped `@` or `/` gives a host or port with a part of it, and those stand in later messages.
Result<void> check_dsn(const std::string& dsn) {
  char* message = nullptr;
  const OptionsPtr options(dsn.find('\0') == dsn.npos ? PQconninfoParse(dsn.c_str(), &message) : nullptr);
  const std::unique_ptr<char, Clear> unused(message);
  if (!options) return invalid_request("config.dsn: is no connection string or URI of libpq");
  if (option(options, "host").find('@') != std::string_view::npos ||
      option(options, "port").find_first_not_of("0123456789, ") != std::string_view::npos) {
    return invalid_request(
        "config.dsn: host or port is none; special characters of a password must be percent-encoded");
  }
  if (sign_behind_slash(dsn)) {
    return invalid_request(
        "config.dsn: an @ behind the first /; special characters of a password or a name must be percent-encoded");
  }
  return {};
}

/// As libpq understands it: seconds, at least 2; 0 or less is for ever.
std::optional<Clock::time_point> connect_deadline(PGconn* connection) {
  const OptionsPtr options(PQconninfo(connection));
  const auto text = option(options, "connect_timeout");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (seconds <= 0) return std::nullopt;
  return Clock::now() + std::chrono::seconds(std::max(seconds, 2));
}

Error cancelled() {
  return failure(Errc::kCancelled, "cancelled");
}

}  // namespace

Session::StopEvent::StopEvent(std::stop_token stop)
    : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), callback_(std::move(stop), Signal{descriptor_.number}) {
  if (descriptor_.number < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Session::StopEvent::Descriptor::~Descriptor() {
  close(number);
}

void Session::StopEvent::Signal::operator()() const noexcept {
  eventfd_write(descriptor, 1);
}

void Session::Close::operator()(pg_conn* connection) const {
  PQfinish(connection);
}

Session::Session(Mode mode, JobContext& context) : mode_(mode), context_(context), stop_(context.stop_token()) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const std::string& dsn, const std::string& database, Mode mode,
                                               JobContext& context) {
  std::unique_ptr<Session> session(new Session(mode, context));
  if (auto connected = session->connect(dsn, database); !connected) {
    if (session->closed_database_) return std::unique_ptr<Session>();
    auto error = connected.error();
    if (error.code == Errc::kNotFound && database.empty()) error.code = Errc::kInvalidRequest;
    return error;
  }
  if (auto begun = session->begin(); !begun) {
    auto error = begun.error();
    if (error.code == Errc::kNotFound) error.code = Errc::kUnsupported;  // a setting that this server does not know
    return error;
  }
  return session;
}

Result<void> Session::connect(const std::string& dsn, const std::string& database) {
  if (auto checked = check_dsn(dsn); !checked) return checked;
  if (database.find('\0') != database.npos) return failure(Errc::kNotFound, "no database has a NUL byte in its name");
  // The first dbname may be a connection string, whose settings win over those before it and lose to those after it.
  const std::array keywords{"connect_timeout", "application_name", "dbname",
                            "dbname",          "client_encoding",  static_cast<const char*>(nullptr)};
  const std::array values{kConnectTimeout + 0, "muster", dsn.c_str(),
                          database.c_str(),    "UTF8",   static_cast<const char*>(nullptr)};
  connection_.reset(PQconnectStartParams(keywords.data(), values.data(), 1));
  if (!connection_) return failure(Errc::kInternalFailure, "out of memory");
  PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);  // only so the SQLSTATE of a refusal is told
  return finish_connect();
}

Result<void> Session::finish_connect() {
  if (PQstatus(connection_.get()) == CONNECTION_BAD) return start_error();
  const auto until = connect_deadline(connection_.get());
  auto status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    switch (wait(status == PGRES_POLLING_READING ? POLLIN : POLLOUT, until)) {
      case Wake::kStopped:
        return cancelled();
      case Wake::kTimeout:
        return unavailable("no connection to PostgreSQL within the connect_timeout");
      case Wake::kSocket:
        break;
    }
    status = PQconnectPoll(connection_.get());
    if (status == PGRES_POLLING_FAILED) return start_error();
  }
  if (PQsetnonblocking(connection_.get(), 1) != 0) return start_error();
  return {};
}

Result<void> Session::begin() {
  const auto left = std::chrono::duration_cast<Millis>(context_.deadline() - Clock::now());
  // A change may take as long as its job; a worker that is cut off must not hold a database either, hence the second.
  const auto most = mode_ == Mode::kRead ? kStatementTimeout : kLongestTimeout;
  const auto timeout = std::to_string(std::clamp(left, Millis{1}, most).count());
  // Where nothing says what bytes are, the server would refuse to give those that are not UTF-8, and all beside them.
  const char* encoding = PQparameterStatus(connection_.get(), "server_encoding");
  const std::string client_encoding = encoding != nullptr && kBytes == encoding ? "'SQL_ASCII'" : "'UTF8'";
  std::vector<std::string> settings{"statement_timeout = " + timeout,
                                    "idle_in_transaction_session_timeout = " + timeout,
                                    "search_path = pg_catalog",
                                    "quote_all_identifiers = off",
                                    "standard_conforming_strings = on",
                                    "client_min_messages = error",
                                    "client_encoding = " + client_encoding};
  for (const auto& [name, value] : kSpellings) settings.push_back(std::string(name) + " = '" + value + "'");
  std::string sql = mode_ == Mode::kRead     ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                    : mode_ == Mode::kChange ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                                             : "";
  for (const auto& setting : settings) sql += (mode_ == Mode::kSingle ? "SET " : "SET LOCAL ") + setting + ";";
  if (PQsendQuery(connection_.get(), sql.c_str()) == 0) return error_of(nullptr);
  if (auto done = answer(); !done) return done.error();
  return {};
}

Result<void> Session::spell(Spelling spelling) {
  std::string sql;
  for (const auto& [name, value] : kSpellings) {
    sql += (sql.empty() ? "SELECT" : ",") + std::string(" set_config('") + name + "', '" + value + "', true)";
  }
  if (spelling == Spelling::kOfRole) {
    sql = "SELECT set_config(name, reset_val, true) FROM pg_settings WHERE name IN (";
    for (const auto& [name, value] : kSpellings) sql += std::string("'") + name + "', ";
    sql += "NULL)";
  }
  if (auto set = query(sql); !set) return set.error();
  return {};
}

Result<void> Session::commit() {
  if (mode_ == Mode::kSingle) return {};
  if (auto done = query("COMMIT"); !done) return done.error();
  return {};
}

std::string Session::identifier(const std::string& text) const {
  const std::unique_ptr<char, Clear> quoted(PQescapeIdentifier(connection_.get(), text.data(), text.size()));
  if (!quoted) throw std::invalid_argument("no name: " + text);
  return quoted.get();
}

std::string Session::literal(const std::string& text) const {
  const std::unique_ptr<char, Clear> quoted(PQescapeLiteral(connection_.get(), text.data(), text.size()));
  if (!quoted) throw std::invalid_argument("no UTF-8 text");
  return quoted.get();
}

Result<std::string> Session::verifier(const std::string& password, const std::string& role) const {
  const std::unique_ptr<char, Clear> made(
      PQencryptPasswordConn(connection_.get(), password.c_str(), role.c_str(), "scram-sha-256"));
  if (!made) return failure(Errc::kInternalFailure, "libpq makes no verifier of the password");
  return std::string(made.get());
}

Result<Rows> Session::query(const std::string& sql, const std::vector<std::string>& parameters) {
  std::vector<const char*> values;
  values.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    if (parameter.find('\0') != parameter.npos) return invalid_request("a name or page token with a NUL byte");
    values.push_back(parameter.c_str());
  }
  context_.count_calls(1);
  sqlstate_.clear();  // an earlier statement's says nothing of one that is cut off
  if (PQsendQueryParams(connection_.get(), sql.c_str(), static_cast<int>(values.size()), nullptr, values.data(),
                        nullptr, nullptr, 0) == 0) {
    return error_of(nullptr);
  }
  return answer();
}

/// Sends what is left of a statement.
Result<void> Session::flush() {
  while (const int left = PQflush(connection_.get())) {
    if (left < 0) return error_of(nullptr);
    if (wait(POLLIN | POLLOUT, std::nullopt) == Wake::kStopped) {
      cancel();
      return cancelled();
    }
    if (PQconsumeInput(connection_.get()) == 0) return error_of(nullptr);  // or the server waits in its turn
  }
  return {};
}

/// The rows of the last statement sent, or the first error.
Result<Rows> Session::answer() {
  if (auto sent = flush(); !sent) return sent.error();
  Rows rows;
  std::optional<Error> error;
  for (;;) {
    while (PQisBusy(connection_.get()) != 0) {
      if (wait(POLLIN, std::nullopt) == Wake::kStopped) {
        cancel();
        return cancelled();
      }
      if (PQconsumeInput(connection_.get()) == 0) return error_of(nullptr);
    }
    const ResultPtr result(PQgetResult(connection_.get()));
    if (!result) break;
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && !error) error = error_of(result.get());
    const int columns = PQnfields(result.get());
    for (int row = 0; row < PQntuples(result.get()); ++row) {
      auto& fields = rows.emplace_back();
      for (int column = 0; column < columns; ++column) {
        fields.emplace_back(PQgetvalue(result.get(), row, column),
                            static_cast<std::size_t>(PQgetlength(result.get(), row, column)));
      }
    }
  }
  if (error) return std::move(*error);
  return rows;
}

Session::Wake Session::wait(short events, std::optional<Clock::time_point> until) const {
  std::array<pollfd, 2> fds{{{PQsocket(connection_.get()), events, 0}, {stop_.descriptor(), POLLIN, 0}}};
  for (;;) {
    int timeout = -1;
    if (until) {
      const auto left = std::chrono::ceil<Millis>(*until - Clock::now()).count();
      timeout = static_cast<int>(std::clamp<Millis::rep>(left, 0, 3'600'000));
    }
    const int ready = poll(fds.data(), fds.size(), timeout);
    if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    if (ready > 0) return fds[1].revents != 0 ? Wake::kStopped : Wake::kSocket;
    if (ready == 0 && Clock::now() >= *until) return Wake::kTimeout;
  }
}

/// Asks the server to give up. Whether it does is not waited for: the connection is closed next, and a statement that
/// goes on has its timeout. That the server hears of it is, for a moment. The library waits for that without end where
/// the server hangs: it does so in a thread of its own, and not in too many.
void Session::cancel() const {
  static std::atomic<int> asking = 0;
  CancelPtr request(PQgetCancel(connection_.get()));
  if (!request) return;
  if (asking.fetch_add(1) >= kMostCancels) {
    --asking;
    return;
  }
  std::promise<void> heard;
  const auto answer = heard.get_future();
  try {
    std::thread([request = std::move(request), heard = std::move(heard)]() mutable {
      std::array<char, 256> message{};
      PQcancel(request.get(), message.data(), message.size());
      --asking;
      heard.set_value();
    }).detach();
  } catch (const std::system_error&) {  // no thread is left
    --asking;
    return;
  }
  answer.wait_for(kCancelPatience);
}

Error Session::start_error() {
  const auto [sqlstate, message] = parse_start_error(PQerrorMessage(connection_.get()));
  closed_database_ = sqlstate == kNoConnections;
  // Without a password libpq ends the connection itself: no server's answer, and yet no outage.
  if (PQconnectionNeedsPassword(connection_.get()) != 0) return access_denied(message);
  // One that the server knows, and whose files it does not find, is not gone.
  if (sqlstate == kNoDatabase && message.find("\nDETAIL:") != message.npos) return unavailable(message);
  auto code = errc_of(sqlstate, message);
  if (sqlstate != kNoDatabase && code == Errc::kNotFound) code = Errc::kInvalidRequest;  // a setting of the dsn
  return failure(code, message);
}

/// Of a query; `result` may be null: the connection is lost.
Error Session::error_of(const pg_result* result) {
  const auto field = [&](int code) {
    const char* text = result == nullptr ? nullptr : PQresultErrorField(result, code);
    return std::string(text == nullptr ? "" : text);
  };
  sqlstate_ = field(PG_DIAG_SQLSTATE);
  if (sqlstate_.empty()) return unavailable(parse_start_error(PQerrorMessage(connection_.get())).message);
  auto message = field(PG_DIAG_MESSAGE_PRIMARY);
  auto code = errc_of(sqlstate_, message);
  if (mode_ != Mode::kRead) {
    // Columns and functions are missing in what was declared, not in an old server's catalogs.
    if (sqlstate_.starts_with("42") && code == Errc::kUnsupported) code = Errc::kInvalidRequest;
    // Two made an object of one name at the same time, and met in the catalog's index.
    if (sqlstate_ == kUniqueViolation && field(PG_DIAG_SCHEMA_NAME) == "pg_catalog") code = Errc::kAlreadyExists;
    // Who depends on it, or is connected to it; details of other errors may show rows of the users' tables.
    const bool told = sqlstate_ == kDependents || sqlstate_ == kInUse;
    if (const auto detail = field(PG_DIAG_MESSAGE_DETAIL); told && !detail.empty()) message += ": " + detail;
  }
  return failure(code, message + " (SQLSTATE " + sqlstate_ + ")");
}

}  // namespace muster::postgres
