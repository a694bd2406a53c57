#pragma once

#include <nats/nats.h>

#include <catch2/catch.hpp>
#include <stdexcept>

#include "plugins/nats/nats.h"
#include "support/nats_server.h"
#include "worker_sdk/bus/nats_handles.h"
#include "worker_sdk/testing/fake_context.h"

namespace muster::test {

inline constexpr char kStream[] = "NATS::Stream";
inline constexpr char kConsumer[] = "NATS::Consumer";
inline constexpr char kKeyValue[] = "NATS::KeyValue";

/// Another client of the same server: makes objects, and asks for the server's own answer.
class Client {
 public:
  explicit Client(const std::string& url) {
    natsConnection* raw = nullptr;
    if (natsConnection_ConnectTo(&raw, url.c_str()) != NATS_OK) throw std::runtime_error("no connection to " + url);
    connection_.reset(raw);
  }

  natsConnection* get() { return connection_.get(); }

  Json api(const std::string& what, const Json& body) {
    const auto text = body.dump();
    natsMsg* raw = nullptr;
    const auto status = natsConnection_Request(&raw, connection_.get(), ("$JS.API." + what).c_str(), text.data(),
                                               static_cast<int>(text.size()), 10'000);
    const MsgPtr message(raw);
    if (status != NATS_OK) throw std::runtime_error(what + ": " + natsStatus_GetText(status));
    auto answer = Json::parse(std::string(natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw))));
    if (answer.contains("error")) throw std::runtime_error(what + ": " + answer["error"].dump());
    return answer;
  }

  void stream(Json config) {
    const auto name = config.at("name").get<std::string>();
    api("STREAM.CREATE." + name, config);
  }

  void durable(const std::string& stream, Json config) {
    const auto name = config.at("durable_name").get<std::string>();
    api("CONSUMER.DURABLE.CREATE." + stream + "." + name, {{"stream_name", stream}, {"config", config}});
  }

  std::string ephemeral(const std::string& stream, Json config) {
    config["inactive_threshold"] = 600'000'000'000;
    return api("CONSUMER.CREATE." + stream, {{"stream_name", stream}, {"config", config}})["name"];
  }

  /// Of the first page.
  std::vector<Json> infos(const std::string& what, const std::string& key) { return api(what, Json::object())[key]; }

 private:
  ConnectionPtr connection_;
};

/// A server of its own, and the plugin that has it as target.
struct Nats {
  explicit Nats(NatsServerOptions options = {.config = "", .user = "", .password = "", .jetstream = true})
      : server(std::move(options)), own{.url = server.url()} {
    nats::add_types(plugin, own);
  }

  Job job(const std::string& type, JobOperation operation) const {
    Job it;
    it.type = type;
    it.operation = std::move(operation);
    return it;
  }
  JobResult run(const std::string& type, JobOperation operation) {
    return plugin.run(job(type, std::move(operation)), config, context);
  }
  Error error(const std::string& type, JobOperation operation) { return std::get<Error>(run(type, operation)); }

  std::vector<Item> list(const std::string& type, const std::optional<Parent>& parent = std::nullopt,
                         std::uint32_t page_size = 100) {
    auto all = testing::list_all(plugin, type, config, parent, page_size);
    CHECK(all.problems.empty());
    return std::move(all.items);
  }
  ReadItem read(const std::string& type, const std::string& id) {
    return testing::read_all(plugin, type, config, {id}).at(0);
  }

  NatsServer server;
  BusAccess own;
  Plugin plugin{nats::plugin_info()};
  Json config = Json::object();
  testing::FakeContext context;
};

}  // namespace muster::test
