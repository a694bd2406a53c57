#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/job.h"

struct pg_conn;
struct pg_result;

namespace muster::postgres {

// SQLSTATEs: one encoding has no character for what another has; a row of the same key is there.
inline constexpr std::string_view kUntranslatable = "22P05";
inline constexpr std::string_view kUniqueViolation = "23505";

/// What PostgreSQL gave, as text in UTF-8, or what it has in place of one (is_text of object.h); NULL is empty.
using Rows = std::vector<std::vector<std::string>>;

/// One job's connection to one database, with a transaction. It ends with the object, so that no idle connection stands
/// in the way of DROP DATABASE. Names in what the server prints are qualified unless they are of pg_catalog, whatever
/// the role's own settings are. Each statement is one: the server refuses text that holds several.
/// thread   one; all waits end when the job is stopped
class Session {
 public:
  enum class Mode : std::uint8_t {
    kRead,    // read only: all queries see the same snapshot of the catalogs
    kChange,  // nothing of it stays without commit(); each statement sees what others have committed
    kSingle,  // no transaction, for the statements that PostgreSQL takes in none
  };

  /// Connects, within the dsn's connect_timeout (10 s; over all its hosts).
  /// `dsn`      connection string or URI of libpq
  /// `database` where to connect to; empty: what the dsn says. Only then a missing database is a mistake of the config
  /// returns    null when the database takes no connections at all
  /// errors     kNotFound (no database of this name), kInvalidRequest (dsn), kAccessDenied, kThrottling,
  ///            kServiceUnavailable, kCancelled, ...; none ever holds the dsn
  static Result<std::unique_ptr<Session>> open(const std::string& dsn, const std::string& database, Mode mode,
                                               JobContext& context);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Runs one statement and counts one call. After an error a transaction can only be ended, or go back to a savepoint.
  Result<Rows> query(const std::string& sql, const std::vector<std::string>& parameters = {});
  enum class Spelling : std::uint8_t { kFixed, kOfRole };
  /// Values, as of time, are printed alike whatever the role's own settings are. Where the server takes texts for
  /// values itself, as in the rows of a table, it does so by those, until this is kFixed again. Not in a kSingle
  /// session.
  Result<void> spell(Spelling spelling);
  /// An error that says what is known of a change: whether it stays is unknown once the connection is lost here, or the
  /// job stopped.
  Result<void> commit();
  /// Of the last statement; empty unless the server answered it with an error.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }

  // What goes into statements that take no parameters. `text` is UTF-8 without NUL bytes.
  [[nodiscard]] std::string identifier(const std::string& text) const;
  [[nodiscard]] std::string literal(const std::string& text) const;
  /// What stands for a password (SCRAM-SHA-256), so that the server, and its log, never see it.
  Result<std::string> verifier(const std::string& password, const std::string& role) const;

 private:
  /// A descriptor that becomes readable when the job is stopped: the callback itself must not block.
  class StopEvent {
   public:
    explicit StopEvent(std::stop_token stop);
    [[nodiscard]] int descriptor() const { return descriptor_.number; }

   private:
    struct Descriptor {
      explicit Descriptor(int opened) : number(opened) {}
      Descriptor(const Descriptor&) = delete;
      Descriptor& operator=(const Descriptor&) = delete;
      ~Descriptor();
      int number;
    };
    struct Signal {
      int descriptor;
      void operator()() const noexcept;
    };
    Descriptor descriptor_;  // outlives the callback, which may be running
    std::stop_callback<Signal> callback_;
  };
  enum class Wake { kSocket, kStopped, kTimeout };

  Session(Mode mode, JobContext& context);
  Result<void> connect(const std::string& dsn, const std::string& database);
  Result<void> finish_connect();
  Result<void> begin();
  Result<void> flush();
  Result<Rows> answer();
  [[nodiscard]] Wake wait(short events, std::optional<std::chrono::steady_clock::time_point> until) const;
  void cancel() const;
  Error start_error();
  Error error_of(const pg_result* result);

  struct Close {
    void operator()(pg_conn* connection) const;
  };

  Mode mode_;
  JobContext& context_;
  StopEvent stop_;
  std::unique_ptr<pg_conn, Close> connection_;
  bool closed_database_ = false;
  std::string sqlstate_;
};

}  // namespace muster::postgres
