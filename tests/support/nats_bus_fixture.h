#pragma once

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/nats_server.h"
#include "worker_sdk/bus/nats_bus.h"

namespace muster::test {

/// None for a success.
template <typename T>
std::optional<Errc> code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

/// Until a test calls something lost; never waited for when all is well.
inline constexpr std::chrono::seconds kPatience{30};

inline std::shared_ptr<spdlog::logger> quiet() {
  return std::make_shared<spdlog::logger>("bus", std::make_shared<spdlog::sinks::null_sink_mt>());
}

inline NatsOptions options_for(const NatsServer& server) {
  NatsOptions options;
  options.url = server.url();
  options.name = "bus_test";
  options.reconnect_wait = Millis(5);
  options.reconnect_wait_max = Millis(50);
  return options;
}

inline std::unique_ptr<NatsBus> connect_to(const NatsServer& server) {
  auto bus = NatsBus::connect(options_for(server), quiet());
  if (!bus) FAIL(bus.error().message);
  return std::move(*bus);
}

/// Turns the loop until `done` holds; false when patience ends.
template <typename Condition>
bool turn_until(NatsBus& bus, Condition done) {
  const TimePoint end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    bus.wait(std::chrono::steady_clock::now() + Millis(20));
  }
  return true;
}

inline std::vector<Message> receive(NatsBus& bus, std::size_t count) {
  std::vector<Message> messages;
  turn_until(bus, [&] {
    bus.receive(messages, count - messages.size());
    return messages.size() == count;
  });
  return messages;
}

/// Subscribes and makes sure that the server knows.
inline SubscriptionId listen(NatsBus& bus, std::string_view subject, std::string_view queue = {}) {
  const auto id = bus.subscribe(subject, queue);
  REQUIRE(id);
  REQUIRE(bus.flush(kPatience));
  return *id;
}

inline void publish(NatsBus& bus, std::string subject, std::string data) {
  REQUIRE(bus.publish({.subject = std::move(subject), .reply = {}, .data = std::move(data), .headers = {}}));
}

}  // namespace muster::test
