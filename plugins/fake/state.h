#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sqlite3.h>

#include "muster/job.h"

/// What was written into the fake cloud: an SQLite file that fake workers of one machine share.
namespace muster::fake {

/// A thing or part that somebody made, or a computed one that somebody changed or deleted. Times are in milliseconds
/// since 1970.
struct Object {
  std::int64_t seq = 0;  // row; 0: not in the file yet
  std::string type{};
  std::string parent{};  // native id, of a part
  std::string native_id{};
  std::string uid{};
  std::string idempotency_key{};  // of its creation
  std::string name{};
  std::string properties{};   // as reads give them
  std::string secret_hash{};  // salted with the uid; empty: it has none
  std::int64_t revision = 0;
  std::int64_t created_at = 0;
  std::int64_t visible_at = 0;  // reads find it from then on
  std::int64_t gone_at = 0;     // of a deleted one: reads find it until then
  bool computed = false;        // it is also in the computed cloud
  bool deleted = false;

  [[nodiscard]] bool readable(std::int64_t now) const { return visible_at <= now && (!deleted || now < gone_at); }
  [[nodiscard]] Resource resource() const { return {native_id, Properties::from_canonical(properties), uid}; }
};

/// A change that takes its time.
struct Request {
  std::string id{};
  std::string operation{};
  std::string type{};
  std::string native_id{};
  std::int64_t ready_at = 0;
};

/// One connection to the file, for one call. What a target wrote belongs to targets of its id and to those of its name:
/// neither a new name nor a new store of the coordinator hides it. Functions throw std::runtime_error when SQLite
/// fails. Thread: one.
class State {
 public:
  /// Makes the file when it is not there.
  /// errors   kInvalidRequest: it cannot be opened
  static Result<State> open(const std::string& path, const TargetInfo& target);

  /// Runs `act` while no other process writes; nothing of what it wrote stays when it throws.
  template <typename Act>
  auto transaction(Act act) {
    Transaction open(*this);
    auto done = act();
    open.commit();
    return done;
  }

  [[nodiscard]] std::optional<Object> find(std::string_view type, std::string_view native_id);
  [[nodiscard]] std::optional<Object> made_with(std::string_view type, std::string_view idempotency_key);
  /// One that is not deleted.
  [[nodiscard]] std::optional<Object> named(std::string_view type, std::string_view parent, std::string_view name);
  /// Readable objects that are not computed, with a `seq` above `after`, in this order.
  [[nodiscard]] std::vector<Object> list(std::int64_t now, std::int64_t after, std::string_view type,
                                         std::string_view parent, std::size_t limit);
  /// Whether there are changes of computed things or parts of `type`.
  [[nodiscard]] bool overlays(std::string_view type);
  void save(const Object& object);
  /// Of the parts of a thing, those that are there.
  void remove_parts(std::string_view parent, std::int64_t gone_at);

  /// Opens a line of the log; returns its number.
  std::int64_t begin_call(std::int64_t now, std::string_view operation, std::string_view type,
                          std::string_view native_id, std::string_view name, std::string_view idempotency_key);
  /// How many calls of the operation had this key.
  [[nodiscard]] std::int64_t calls(std::string_view operation, std::string_view idempotency_key);
  /// Whether one of them did what it should to that object.
  [[nodiscard]] bool applied(std::string_view operation, std::string_view idempotency_key, std::string_view native_id);
  void end_call(std::int64_t call, std::string_view outcome, std::string_view native_id);

  void save(const Request& request, std::string_view idempotency_key);
  [[nodiscard]] std::optional<Request> request(std::string_view id);
  [[nodiscard]] std::optional<Request> request_of(std::string_view operation, std::string_view idempotency_key,
                                                  std::string_view native_id);

 private:
  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  class Transaction {
   public:
    explicit Transaction(State& state) : state_(state) { state_.run("BEGIN IMMEDIATE"); }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction() {
      if (!committed_) sqlite3_exec(state_.connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    void commit() {
      state_.run("COMMIT");
      committed_ = true;
    }

   private:
    State& state_;
    bool committed_ = false;
  };

  State(sqlite3* connection, const TargetInfo& target)
      : connection_(connection), target_(target.name), target_id_(target.id) {}
  [[noreturn]] void fail(std::string_view what) const;
  void set_up();

  /// Parameters are numbers and text, which is not copied: it lives until the last step.
  template <typename... Args>
  Statement prepare(const char* sql, const Args&... args) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(connection_.get(), sql, -1, &raw, nullptr) != SQLITE_OK) fail(sql);
    Statement statement(raw);
    int index = 0;
    (bind(raw, ++index, args), ...);
    return statement;
  }
  static void bind(sqlite3_stmt* statement, int index, std::string_view text) {
    const char* bytes = text.data() == nullptr ? "" : text.data();
    sqlite3_bind_text64(statement, index, bytes, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  template <typename Number>
  requires std::is_integral_v<Number>
  static void bind(sqlite3_stmt* statement, int index, Number number) {
    sqlite3_bind_int64(statement, index, static_cast<sqlite3_int64>(number));
  }
  /// Whether there is another row.
  bool step(const Statement& statement);
  template <typename... Args>
  void run(const char* sql, const Args&... args) {
    const auto statement = prepare(sql, args...);
    while (step(statement)) {
    }
  }
  static std::string text(const Statement& statement, int column);
  static Object object(const Statement& statement);
  std::optional<Object> first(const Statement& statement);
  std::optional<Request> first_request(const Statement& statement);

  std::unique_ptr<sqlite3, Close> connection_;
  std::string target_;
  std::string target_id_;
};

}  // namespace muster::fake
