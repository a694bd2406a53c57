#include <catch2/catch.hpp>

#include "schema/subjects.h"

namespace muster {

TEST_CASE("subjects are those of the contract", "[subjects]") {
  const Subjects subjects;
  const WorkerId worker{"w1"};
  CHECK(subjects.job("PG", "default") == "muster.job.PG");
  CHECK(subjects.job("PG", "site-b") == "muster.job.PG.site-b");
  CHECK(subjects.worker_job("PG", worker) == "muster.worker.PG.w1.job");
  CHECK(subjects.worker_control("PG", worker) == "muster.worker.PG.w1.control");
  CHECK(subjects.reply("PG", CoordinatorId{"c1"}, Token{"t1"}) == "muster.reply.PG.c1.t1");
  CHECK(subjects.replies(CoordinatorId{"c1"}) == "muster.reply.*.c1.*");
  CHECK(subjects.result("PG") == "muster.result.PG");
  CHECK(subjects.results() == "muster.result.*");
  CHECK(subjects.announce("PG") == "muster.announce.PG");
  CHECK(subjects.announces() == "muster.announce.*");
  CHECK(subjects.heartbeat("PG") == "muster.heartbeat.PG");
  CHECK(subjects.heartbeats() == "muster.heartbeat.*");
  CHECK(subjects.rollcall() == "muster.rollcall");
  CHECK(subjects.api("resources") == "muster.api.resources");
  CHECK(subjects.apis() == "muster.api.>");
  CHECK(subjects.event("PG", "resource.discovered") == "muster.event.PG.resource.discovered");
  CHECK(subjects.event("", "run.started") == "muster.event.-.run.started");
  CHECK(subjects.events() == "muster.event.>");
  CHECK(subjects.event_stream() == "MUSTER_EVENTS");
}

TEST_CASE("the stream's own subjects are apart from those that observers read", "[subjects]") {
  const Subjects subjects;
  CHECK(subjects.event_log("PG", "resource.changed") == "muster.eventlog.PG.resource.changed");
  CHECK(subjects.event_log("", "run.started") == "muster.eventlog.-.run.started");
  CHECK(subjects.event_logs() == "muster.eventlog.>");
}

TEST_CASE("a prefix of several tokens moves every subject", "[subjects]") {
  const Subjects subjects("team-a.fleet_1");
  CHECK(subjects.job("FS", "default") == "team-a.fleet_1.job.FS");
  CHECK(subjects.event_stream() == "TEAM-A_FLEET_1_EVENTS");
}

TEST_CASE("tokens of a subject are counted after the prefix", "[subjects]") {
  CHECK(subject_token("muster.reply.PG.c.t", "muster", 0) == "reply");
  CHECK(subject_token("muster.reply.PG.c.t", "muster", 1) == "PG");
  CHECK(subject_token("muster.reply.PG.c.t", "muster", 3) == "t");
  CHECK(subject_token("muster.reply.PG.c.t", "muster", 4).empty());
  CHECK(subject_token("a.b.job.FS", "a.b", 1) == "FS");
  CHECK(subject_token("muster", "muster", 0).empty());
  CHECK(subject_token("musterx.job.FS", "muster", 0).empty());
  CHECK(subject_token("other.job.FS", "muster", 0).empty());
}

TEST_CASE("namespaces, names, prefixes and tokens", "[subjects]") {
  const std::string longest(64, 'a');
  for (const auto* good : {"PG", "a", "0", "A-b_c"}) CHECK(valid_namespace(good));
  for (const auto* bad : {"", "-a", "_a", "a.b", "a b", "ä", "a*"}) CHECK_FALSE(valid_namespace(bad));
  CHECK(valid_namespace(longest));
  CHECK_FALSE(valid_namespace(longest + "a"));

  for (const auto* good : {"orders.db", "a", "A-b_c.1"}) CHECK(valid_target_name(good));
  for (const auto* bad : {"", ".a", "a/b", "a b"}) CHECK_FALSE(valid_target_name(bad));

  for (const auto* good : {"muster", "team-a.muster", "_x", "a.b.c"}) CHECK(valid_prefix(good));
  for (const auto* bad : {"", ".", "a.", ".a", "a..b", "a b", "a.*", ">"}) CHECK_FALSE(valid_prefix(bad));
  CHECK(valid_prefix(longest));
  CHECK_FALSE(valid_prefix(longest + "a"));

  for (const auto* good : {"01J9", "a-b_c", "ä", "$x"}) CHECK(valid_token(good));
  for (const auto* bad : {"", "a.b", "*", ">", "a b", "\t", "\x7f"}) CHECK_FALSE(valid_token(bad));
  CHECK_FALSE(valid_token(std::string_view("a\0b", 3)));
  CHECK(valid_token(longest));
  CHECK_FALSE(valid_token(longest + "a"));

  CHECK(namespace_of("PG::Table") == "PG");
  CHECK(namespace_of("FAKE::Cloud::Thing0") == "FAKE");
  CHECK(namespace_of("PG") == "PG");
}

}  // namespace muster
