#pragma once

#include <nats/nats.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "worker_sdk/bus/nats_handles.h"

namespace muster::test {

/// A plain client of a NATS server: asks the JetStream API, and hears everything that passes.
class NatsClient {
 public:
  explicit NatsClient(const std::string& url) {
    natsConnection* raw = nullptr;
    check(natsConnection_ConnectTo(&raw, url.c_str()), "connect");
    connection_.reset(raw);
  }

  /// Answer of `$JS.API.<what>`; an error of it is thrown.
  nlohmann::json api(const std::string& what, const nlohmann::json& body = nlohmann::json::object()) {
    const auto text = body.dump();
    natsMsg* raw = nullptr;
    check(natsConnection_Request(&raw, connection_.get(), ("$JS.API." + what).c_str(), text.data(),
                                 static_cast<int>(text.size()), 30'000),
          what);
    const MsgPtr message(raw);
    auto answer = nlohmann::json::parse(data_of(raw));
    if (answer.contains("error")) throw std::runtime_error(what + ": " + answer["error"].dump());
    return answer;
  }
  void add_stream(const std::string& name) {
    api("STREAM.CREATE." + name, {{"name", name}, {"subjects", {name + ".>"}}, {"storage", "memory"}});
  }
  void add_consumer(const std::string& stream, const std::string& name) {
    api("CONSUMER.DURABLE.CREATE." + stream + "." + name,
        {{"stream_name", stream}, {"config", {{"durable_name", name}, {"ack_policy", "explicit"}}}});
  }

  /// Asks for an answer on `reply`, which need not be one that can be sent to.
  void ask(const std::string& subject, const std::string& reply, const std::string& text) {
    check(natsConnection_PublishRequestString(connection_.get(), subject.c_str(), reply.c_str(), text.c_str()),
          subject);
  }

  /// From now on every message is kept.
  void listen() {
    natsSubscription* raw = nullptr;
    check(natsConnection_SubscribeSync(&raw, connection_.get(), ">"), "subscribe");
    subscription_.reset(raw);
    check(natsSubscription_SetPendingLimits(raw, -1, -1), "limits");
    check(natsConnection_Flush(connection_.get()), "flush");
  }
  /// What has come since listen(), each as subject, reply subject, headers and data, a line between them.
  std::vector<std::string> heard() {
    check(natsConnection_Flush(connection_.get()), "flush");
    std::vector<std::string> all;
    natsMsg* raw = nullptr;
    while (natsSubscription_NextMsg(&raw, subscription_.get(), 100) == NATS_OK) {
      const MsgPtr message(raw);
      const char* reply = natsMsg_GetReply(raw);
      auto text = std::string(natsMsg_GetSubject(raw)) + "\n" + (reply == nullptr ? "" : reply) + "\n";
      const char** names = nullptr;
      int count = 0;
      if (natsMsgHeader_Keys(raw, &names, &count) == NATS_OK) {
        for (int i = 0; i < count; ++i) {
          const char* value = nullptr;
          if (natsMsgHeader_Get(raw, names[i], &value) == NATS_OK) text += std::string(names[i]) + ": " + value + "\n";
        }
        free(names);
      }
      all.push_back(text + data_of(raw));
    }
    return all;
  }

 private:
  static void check(natsStatus status, const std::string& what) {
    if (status != NATS_OK) throw std::runtime_error(what + ": " + natsStatus_GetText(status));
  }
  static std::string data_of(const natsMsg* message) {
    return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
  }

  ConnectionPtr connection_;
  SubscriptionPtr subscription_;  // before the connection, at the end
};

}  // namespace muster::test
