// What an operator reads when a coordinator does not take what supervisors report.

#include <catch2/catch.hpp>

#include "coordinator/cli/plugin_reports.h"

using namespace muster;
using namespace muster::cli;

namespace {

const Error kFull{Errc::kLimit, "there is no room", {}, 0};
const Error kRefused{Errc::kInvalidRequest, "unknown state", {}, 0};
const Error kSilent{Errc::kNoResponders, "no answer", {}, 0};

}  // namespace

TEST_CASE("a refusal is told once, and when it is another or over") {
  ReportTrouble trouble;
  const TimePoint now{};
  CHECK(trouble.heard(std::nullopt, now).empty());
  CHECK(trouble.heard(kRefused, now) == "no coordinator takes the reports of plugins: unknown state");
  CHECK(trouble.heard(kRefused, now).empty());
  const auto full = trouble.heard(kFull, now);
  CHECK(full.find("there is no room; a coordinator keeps reports of 256 supervisors and 4096 plugins, 512 KiB") !=
        std::string::npos);
  CHECK(trouble.heard(kFull, now).empty());
  CHECK(trouble.heard(std::nullopt, now) == "a coordinator takes the reports of plugins again");
  CHECK(trouble.heard(std::nullopt, now).empty());
}

TEST_CASE("nobody who answers is told when it has lasted") {
  ReportTrouble trouble;
  TimePoint now{};
  CHECK(trouble.heard(kSilent, now).empty());
  now += Millis{9'999};
  CHECK(trouble.heard(kSilent, now).empty());
  CHECK(trouble.heard(std::nullopt, now).empty());
  CHECK(trouble.heard(kSilent, now).empty());
  now += Millis{10'000};
  CHECK(trouble.heard(kSilent, now) == "no coordinator takes the reports of plugins: no answer");
  CHECK(trouble.heard(kSilent, now).empty());
  CHECK_FALSE(trouble.heard(std::nullopt, now).empty());
}

TEST_CASE("texts of a report have room, whatever bytes a file is called by") {
  PluginHost::Plugin plugin;
  plugin.name = std::string(255, '\xff');
  plugin.path = std::string(4096, '\xff');
  plugin.status.reason = std::string(4096, '\xff');
  const auto said = supervise_request("s", "host", {plugin}).dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto heard = Json::parse(said)["plugins"][0];
  CHECK(heard["plugin"].get<std::string>().size() <= 300);
  CHECK(heard["path"].get<std::string>().size() <= 4096);
  CHECK(heard["reason"].get<std::string>().size() <= 4096);
}
