#include "coordinator/cli/client.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <simdjson.h>

#include "coordinator/cli/output.h"
#include "schema/subjects.h"
#include "worker_sdk/bus/stream_ack.h"

namespace muster::cli {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kReadBatch = 256;
constexpr Millis kPatience{60'000};  // with a plan of a hundred thousand resources
constexpr Millis kAskAgain{2'000};   // without an answer; twice as long each time
constexpr Millis kReconnecting{100};
constexpr Millis kGlance{100};  // at whether anybody wants the answer still
/// Verbs that are carried out even when nobody waits for their answer any more.
constexpr std::array<std::string_view, 6> kLasting{"apply",  "cancel",         "discover",
                                                   "forget", "targets-accept", "workers-drain"};
constexpr std::array<std::string_view, 6> kChanging{"apply",    "cancel", "declare",
                                                    "discover", "forget", "plan"};  // verbs that are asked once

std::string remedy() {
  return "start a fleet with `muster up`, or say where it is with --nats URL or --data-dir DIR";
}

Errc code_named(std::string_view name) {
  constexpr std::array kCodes{
      Errc::kNotFound, Errc::kAlreadyExists, Errc::kInvalidRequest,     Errc::kUnsupported,      Errc::kAccessDenied,
      Errc::kLimit,    Errc::kConflict,      Errc::kServiceUnavailable, Errc::kStoreUnavailable, Errc::kNoWorker};
  const auto it = std::find_if(kCodes.begin(), kCodes.end(), [&](Errc one) { return errc_name(one) == name; });
  return it == kCodes.end() ? Errc::kInternalFailure : *it;
}

std::string text_of(Json request) {
  request["api"] = 1;
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `data` with the room behind it that reading it as JSON, where it is, takes.
std::string readable(std::string_view data) {
  std::string text;
  text.reserve(data.size() + simdjson::SIMDJSON_PADDING);
  text += data;
  return text;
}

/// The error that an answer to `verb` carries, as its first member; none when it is a good one.
/// `answer`   readable()
std::optional<Error> api_error(const std::string& answer, std::string_view verb) {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(answer).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS) {
    return Error{Errc::kMalformed, "the answer is no JSON object"};
  }
  // Nothing is behind it, and a list of a megabyte is not gone through to find none.
  auto member = object.begin();
  simdjson::ondemand::field first;
  std::string_view name, found;
  if (member == object.end() || (*member).get(first) != simdjson::SUCCESS ||
      first.unescaped_key().get(name) != simdjson::SUCCESS || name != "error" ||
      simdjson::to_json_string(first.value()).get(found) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const Json body = Json::parse(found, nullptr, false);
  if (!body.is_object()) return Error{Errc::kMalformed, "the answer is an error that cannot be read"};
  Error error;  // whose parts may be of any kind: not only a coordinator may have answered
  error.code = code_named(field(body, "code"));
  error.message = field(body, "message");
  if (error.message.empty()) error.message = "refused";
  const std::string where = field(body, "where");
  if (!where.empty() && where != verb) error.message += " (" + where + ")";
  return error;
}

}  // namespace

NatsClient::NatsClient(std::unique_ptr<NatsBus> bus, std::string url, std::string prefix, Millis timeout)
    : bus_(std::move(bus)), url_(std::move(url)), prefix_(std::move(prefix)), timeout_(timeout) {}

Result<std::unique_ptr<NatsClient>> NatsClient::connect(NatsOptions options, const std::string& prefix, Millis timeout,
                                                        std::shared_ptr<spdlog::logger> log) {
  const std::string url = redact_url(options.url);
  options.connect_timeout = timeout;
  auto bus = NatsBus::connect(std::move(options), std::move(log));
  if (!bus) {
    Error error = bus.error();
    if (error.code == Errc::kAccessDenied) error.message += "; check the credentials";
    if (error.code == Errc::kDisconnected) error.message += "; " + remedy();
    return error;
  }
  std::unique_ptr<NatsClient> client(new NatsClient(std::move(*bus), url, prefix, timeout));
  auto answers = client->bus_->subscribe_answers(client->bus_->inbox() + ".>");
  if (!answers) return answers.error();
  client->answers_ = *answers;
  return client;
}

Result<std::string> NatsClient::ask(std::string_view verb, Json request) {
  return ask_text(verb, text_of(std::move(request)));
}

Outgoing NatsClient::question(std::string_view verb, std::string request) {
  Outgoing message;
  message.subject = Subjects(prefix_).api(verb);
  message.reply = bus_->inbox() + "." + std::to_string(++requests_);
  message.data = std::move(request);
  return message;
}

void NatsClient::ask_ahead(std::string_view verb, const Json& request) {
  ahead_ = question(verb, text_of(request));
  if (!bus_->publish(*ahead_)) ahead_.reset();
  bus_->send();
}

Result<std::string> NatsClient::ask_text(std::string_view verb, std::string request) {
  if (unwanted_ && unwanted_()) return Error{Errc::kCancelled, "stopped before it was asked for", {}, 0};
  auto message = question(verb, std::move(request));
  const auto ahead = std::exchange(ahead_, std::nullopt);
  const bool asked = ahead && ahead->subject == message.subject && ahead->data == message.data;
  if (asked) message.reply = ahead->reply;
  // What is large takes its time; whoever asks waits for the answer, as what it begins goes on all the same.
  const bool large = verb == "plan" || verb == "apply";
  const auto patience = large ? std::max(timeout_, kPatience) : timeout_;
  const auto deadline = steady_clock::now() + patience;
  // A server that goes takes questions and answers with it: what changes nothing is asked again.
  const bool repeats = std::find(kChanging.begin(), kChanging.end(), verb) == kChanging.end();
  const bool lasts = std::find(kLasting.begin(), kLasting.end(), verb) != kLasting.end();
  const std::string perhaps = lasts ? ", and it may be done all the same" : "";
  auto silence = kAskAgain;
  auto next = steady_clock::now() + (asked ? silence : Millis(0));
  while (true) {
    if (const auto now = steady_clock::now(); now >= next) {
      if (auto sent = bus_->publish(message)) {
        next = repeats ? now + silence : steady_clock::time_point::max();
        silence *= 2;
      } else if (sent.error().code == Errc::kDisconnected && !bus_->status().closed) {
        next = now + kReconnecting;
      } else {
        return sent.error();
      }
    }
    if (auto answer = take_messages(message.reply)) {
      if (!*answer) return answer->error();
      auto error = api_error(**answer, verb);
      return error ? Result<std::string>(std::move(*error)) : std::move(*answer);
    }
    if (is_refused(message.subject)) {
      return Error{Errc::kAccessDenied,
                   url_ + " lets this user not ask a coordinator for that: sign in as an operator; it says: " +
                       bus_->status().last_error,
                   {},
                   0};
    }
    const auto now = steady_clock::now();
    if (now >= deadline) break;
    if (unwanted_ && unwanted_()) return Error{Errc::kCancelled, "stopped waiting for the answer" + perhaps, {}, 0};
    bus_->wait(std::min({next, deadline, now + kGlance}));
  }
  const std::string trouble = bus_->status().last_error;
  return Error{Errc::kNoResponders,
               "no answer from " + url_ + " (prefix " + prefix_ + ") within " + std::to_string(patience.count()) +
                   " ms" + perhaps + (trouble.empty() ? "; wait longer with --timeout" : "; last error: " + trouble)};
}

bool NatsClient::is_refused(std::string_view subject) const {
  const auto said = bus_->status().last_error;
  return said.find("ermissions Violation for Publish to \"" + std::string(subject) + '"') != std::string::npos;
}

std::optional<Result<std::string>> NatsClient::take_messages(std::string_view expected) {
  std::optional<Result<std::string>> answer;
  std::vector<Message> messages;
  while (bus_->receive(messages, kReadBatch) > 0) {
    for (const Message& message : messages) {
      if (message.subscription != answers_) {
        events_.emplace_back(message.data);
      } else if (message.subject == expected && message.no_responders) {
        answer = Error{Errc::kNoResponders,
                       "no coordinator with prefix " + prefix_ + " answers at " + url_ + "; " + remedy()};
      } else if (message.subject == expected && !acknowledging_stream(message.data)) {
        answer = readable(message.data);
      }
    }
    messages.clear();
  }
  return answer;
}

Result<void> NatsClient::listen() {
  if (auto subscribed = bus_->subscribe(Subjects(prefix_).events()); !subscribed) return subscribed.error();
  return bus_->flush(timeout_);
}

std::vector<std::string> NatsClient::heard(Millis longest) {
  const auto deadline = steady_clock::now() + longest;
  take_messages({});
  if (events_.empty()) {
    bus_->wait(deadline);
    take_messages({});
  }
  return std::exchange(events_, {});
}

std::uint64_t NatsClient::connections() const {
  return bus_->link().connections;
}

Result<void> LateClient::connect() {
  if (client_) return {};
  auto connected = connect_();
  if (!connected) return connected.error();
  client_ = std::move(*connected);
  return {};
}

Result<std::string> LateClient::ask(std::string_view verb, Json request) {
  if (auto connected = connect(); !connected) return connected.error();
  return client_->ask(verb, std::move(request));
}

Result<std::string> LateClient::ask_text(std::string_view verb, std::string request) {
  if (auto connected = connect(); !connected) return connected.error();
  return client_->ask_text(verb, std::move(request));
}

void LateClient::ask_ahead(std::string_view verb, const Json& request) {
  if (client_) client_->ask_ahead(verb, request);
}

Result<void> LateClient::listen() {
  if (auto connected = connect(); !connected) return connected;
  return client_->listen();
}

std::vector<std::string> LateClient::heard(Millis longest) {
  return client_ ? client_->heard(longest) : std::vector<std::string>();
}

std::uint64_t LateClient::connections() const {
  return client_ ? client_->connections() : 0;
}

Result<Page> parse_page(std::string answer) {
  // The items are passed on as they came: parsing and writing them anew would cost ten times as much and could change
  // numbers that have no room in a double.
  answer.reserve(answer.size() + simdjson::SIMDJSON_PADDING);  // that of a client is readable()
  simdjson::ondemand::parser parser;
  Page page;
  try {
    simdjson::ondemand::document document = parser.iterate(answer);
    for (auto item : document["items"].get_array()) {
      page.items.emplace_back(std::string_view(simdjson::to_json_string(item)));
    }
    simdjson::ondemand::value next;
    if (document["next"].get(next) == simdjson::SUCCESS && !next.is_null()) page.next = std::string_view(next);
  } catch (const simdjson::simdjson_error& error) {
    return Error{Errc::kMalformed, std::string("the answer is no list: ") + error.what()};
  }
  return page;
}

std::string next_page(const std::string& answer) {
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(answer);
  simdjson::ondemand::document document;
  std::string_view next;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return {};
  return document["next"].get(next) == simdjson::SUCCESS ? std::string(next) : std::string();
}

Result<void> each_item(Client& client, std::string_view verb, Json request,
                       const std::function<bool(const std::string& item)>& use,
                       const std::function<void()>& end_of_page) {
  for (bool first = true;; first = false) {
    auto answer = client.ask(verb, request);
    if (!answer) return answer.error();
    auto page = parse_page(std::move(*answer));
    if (!page) return page.error();
    request["cursor"] = page->next;
    // Who wants a few items only may have them all with the first page.
    if (!first && !page->next.empty()) client.ask_ahead(verb, request);
    for (const std::string& item : page->items) {
      if (!use(item)) return {};
    }
    end_of_page();
    if (page->next.empty()) return {};
  }
}

Result<std::string> rest_of(Client& client, std::string_view verb, Json request, const char* list, std::string first) {
  if (first.find(R"("next":)") == std::string::npos) return first;
  Json whole = Json::parse(first);
  while (!field(whole, "next").empty()) {
    request["cursor"] = field(whole, "next");
    const auto answer = client.ask(verb, request);
    if (!answer) return answer;
    Json more = Json::parse(*answer);
    for (Json& item : more[list]) whole[list].push_back(std::move(item));
    whole["next"] = more.value("next", Json());
  }
  whole.erase("next");
  return whole.dump();
}

int exit_status(const Error& error) {
  switch (error.code) {
    case Errc::kNoResponders:
    case Errc::kDisconnected:
      return 3;
    case Errc::kInvalidRequest:
      return 2;
    default:
      return 1;
  }
}

bool may_pass(const Error& error) {
  return exit_status(error) == 3 || error.code == Errc::kStoreUnavailable;
}

}  // namespace muster::cli
