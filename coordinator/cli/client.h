#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <spdlog/fwd.h>
#include <nlohmann/json.hpp>

#include "schema/result.h"
#include "worker_sdk/bus/nats_bus.h"

namespace muster::cli {

using Json = nlohmann::ordered_json;  // answers are shown in the order in which the coordinator wrote them

/// A running fleet, as the command line sees it.
class Client {
 public:
  virtual ~Client() = default;

  /// Asks a coordinator and waits for the answer: the text of a JSON object.
  /// `request`   an object; the API version is added
  /// errors      kNoResponders: nobody answered in time (message says what to do); kCancelled: the user does not want
  ///             to wait any longer; what the API answered otherwise
  virtual Result<std::string> ask(std::string_view verb, Json request) = 0;
  /// The same with a request that is large, as its text, API version included.
  virtual Result<std::string> ask_text(std::string_view verb, std::string request) {
    return ask(verb, Json::parse(request));
  }
  /// Says what will be asked next, so that the answer comes while the last one is used. Another question in between
  /// is answered as ever, and that answer is lost. Only for verbs that change nothing.
  virtual void ask_ahead(std::string_view /*verb*/, const Json& /*request*/) {}

  /// Hears events from now on.
  virtual Result<void> listen() = 0;
  /// Bodies of the event messages that came, in order; waits for the first one, at most `longest`.
  virtual std::vector<std::string> heard(Millis longest) = 0;
  /// How often there was a connection: what was told between two was told to nobody here.
  [[nodiscard]] virtual std::uint64_t connections() const = 0;
};

/// A Client on NATS.
class NatsClient final : public Client {
 public:
  /// `timeout`   of the connection and of each answer
  /// errors      kDisconnected, kAccessDenied, kInvalidRequest; the message says what to do
  static Result<std::unique_ptr<NatsClient>> connect(NatsOptions options, const std::string& prefix, Millis timeout,
                                                     std::shared_ptr<spdlog::logger> log);

  Result<std::string> ask(std::string_view verb, Json request) override;
  Result<std::string> ask_text(std::string_view verb, std::string request) override;
  void ask_ahead(std::string_view verb, const Json& request) override;
  Result<void> listen() override;
  std::vector<std::string> heard(Millis longest) override;
  [[nodiscard]] std::uint64_t connections() const override;
  /// No answer is waited for any longer once this is true: kCancelled.
  void stop_when(std::function<bool()> unwanted) { unwanted_ = std::move(unwanted); }

 private:
  NatsClient(std::unique_ptr<NatsBus> bus, std::string url, std::string prefix, Millis timeout);

  Outgoing question(std::string_view verb, std::string request);
  /// Reads what has come: event bodies are kept, and the answer to `expected` is returned when it is there.
  std::optional<Result<std::string>> take_messages(std::string_view expected);
  /// Whether the server has refused what was sent to a subject: nobody else says so.
  [[nodiscard]] bool is_refused(std::string_view subject) const;

  std::unique_ptr<NatsBus> bus_;
  std::string url_;  // without password
  std::string prefix_;
  Millis timeout_;
  SubscriptionId answers_ = 0;
  std::uint64_t requests_ = 0;
  std::optional<Outgoing> ahead_;  // asked already
  std::function<bool()> unwanted_;
  std::vector<std::string> events_;
};

/// A Client that connects when it is first needed: what is wrong with what a user wrote is said without a fleet.
class LateClient final : public Client {
 public:
  using Connect = std::function<Result<std::unique_ptr<Client>>()>;
  explicit LateClient(Connect connect) : connect_(std::move(connect)) {}

  Result<std::string> ask(std::string_view verb, Json request) override;
  Result<std::string> ask_text(std::string_view verb, std::string request) override;
  void ask_ahead(std::string_view verb, const Json& request) override;
  Result<void> listen() override;
  std::vector<std::string> heard(Millis longest) override;
  [[nodiscard]] std::uint64_t connections() const override;

 private:
  Result<void> connect();

  Connect connect_;
  std::unique_ptr<Client> client_;
};

/// One page of a list as the API answers it. The items are the coordinator's own bytes.
struct Page {
  std::vector<std::string> items;
  std::string next;  // cursor, empty at the end
};
/// errors   kMalformed: not a list
Result<Page> parse_page(std::string answer);
/// The cursor that an answer of any kind goes on with; empty at the end.
std::string next_page(const std::string& answer);

/// Asks for page after page and calls `use` for each item until `use` returns false or the list ends. Pages of a long
/// list come while the one before is used.
Result<void> each_item(
    Client& client, std::string_view verb, Json request, const std::function<bool(const std::string& item)>& use,
    const std::function<void()>& end_of_page = [] {});

/// The whole of an object whose array `list` may be more than an answer holds; `first` is what `request` was answered.
Result<std::string> rest_of(Client& client, std::string_view verb, Json request, const char* list, std::string first);

/// Exit status for an error: 1 failed or refused, 2 bad input, 3 nobody answered.
int exit_status(const Error& error);

/// Whether the same question may be answered in a while: nobody is there, or the store does not work at the moment.
bool may_pass(const Error& error);

}  // namespace muster::cli
