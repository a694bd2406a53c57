// Manifests: each is fetched once from whoever announces it, whatever others announce, send or leave out.
#include <catch2/catch.hpp>

#include "support/admission_fixture.h"
#include "worker_sdk/bus/digest.h"

using namespace muster;
using Catch::Contains;
using test::AdmissionFixture;

TEST_CASE_METHOD(AdmissionFixture, "an unknown manifest is fetched, kept, and its worker accepted") {
  start();
  auto& worker = add_worker("w1");
  settle();
  REQUIRE(worker.controls.size() == 1);
  CHECK(worker.controls[0].fleet == store->fleet());
  CHECK(worker.controls[0].action == decltype(Control::action)(SendManifest{worker.announcement.manifest}));
  REQUIRE(worker.accepted());
  CHECK(worker.answers.back().fleet == store->fleet());
  CHECK(worker.answers.back().coordinator == coordinator->status().id);
  const auto kept = store->manifests().value();
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].hash == worker.announcement.manifest);
  CHECK(kept[0].manifest == manifest);
  advance(Millis(500));
  const auto joined = events("worker.");
  REQUIRE(joined.size() == 1);
  CHECK(joined[0]["type"] == "muster.worker.joined");
  CHECK(joined[0]["subject"] == "w1");
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest is fetched once per hash, also over restarts") {
  start();
  add_worker("w1");
  settle();
  auto& second = add_worker("w2");
  settle();
  CHECK(second.accepted());
  CHECK(second.controls.empty());
  restart();
  CHECK(worker_states() == Json{{"w1", "active"}, {"w2", "active"}});
  CHECK(second.controls.empty());
  CHECK(workers[0]->controls.size() == 1);
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest may come in parts") {
  start();
  auto& worker = add_worker("w1");
  worker.manifest_part = 64;
  settle();
  CHECK(worker.accepted());
  CHECK(store->manifests().value().at(0).manifest == manifest);
}

TEST_CASE_METHOD(AdmissionFixture, "parts that make no manifest do no harm, and it is asked for again") {
  start();
  auto& worker = add_worker("w1");
  const auto reply = where_manifest_goes(worker);
  const auto asked = manifest_asked_for(reply);
  for (const auto& part : {Part{0, 2, "x"}, Part{0, 2, "x"}, Part{1, 3, "y"}, Part{7, 2, "z"}}) {
    worker.send_reply(asked, reply, part);
    settle();
  }
  CHECK(worker_states().empty());
  worker.alive = true;
  worker.manifest_part = 64;
  advance(Millis(1100));
  worker.announce();
  settle();
  CHECK(worker.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that does not come is asked for again") {
  start();
  auto& worker = add_worker("w1");
  worker.alive = false;
  settle();
  worker.alive = true;
  for (int i = 0; i < 3 && !worker.accepted(); ++i) {
    advance(Millis(1100));
    worker.announce();  // as a worker does that gets no answer
    settle();
  }
  CHECK(worker.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that takes longer than the patience for it counts all the same") {
  start();
  auto& worker = add_silent_worker("w1");
  worker.alive = false;
  const bool two = GENERATE(false, true);
  if (two) add_silent_worker("w2").alive = false;
  const auto hears = broker.connect("hears");
  hears->subscribe(Subjects(config.prefix).worker_control("NS", worker.announcement.worker)).value();
  std::vector<Message> heard;
  for (int i = 0; i < 6; ++i) {  // a question each time
    for (const auto& one : workers) one->announce();
    settle();
    advance(Millis(1100));
  }
  hears->receive(heard, 10);
  REQUIRE(heard.size() == (two ? 3 : 6));
  worker.alive = true;
  const auto in_parts = GENERATE(false, true);
  Job asked;
  const auto subject = [&](std::size_t question) {
    const std::string reply(heard.at(question).reply);
    asked = manifest_asked_for(reply);
    return reply;
  };
  if (!in_parts) {
    worker.send_reply(asked, subject(0), ManifestBytes{worker.manifest_bytes});
  } else {  // of which the half that is lost comes with the next answer
    const auto first = subject(0);
    const auto whole =
        encode(JobReply{store->fleet(), {}, asked.token, WorkerId("w1"), 0, 0, ManifestBytes{worker.manifest_bytes}});
    worker.send_reply(asked, first, Part{0, 2, whole.substr(0, 8)});
    settle();
    for (const auto& one : workers) one->announce();
    settle();
    const auto second = subject(1);
    worker.send_reply(asked, second, Part{1, 2, whole.substr(8)});
  }
  settle();
  CHECK(worker.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that is not the announced one is refused") {
  start();
  auto& worker = add_worker("w1");
  worker.manifest_bytes = encode(test::make_manifest({{"NS::Other", ""}}));
  const auto why = rejection_of(worker);
  CHECK(why.code == "MANIFEST");
  CHECK(why.final);
  CHECK(store->manifests().value().empty());
  advance(Millis(500));
  const auto rejected = events("worker.");
  REQUIRE(rejected.size() == 1);
  CHECK(rejected[0]["type"] == "muster.worker.rejected");
  CHECK(rejected[0]["data"]["code"] == "MANIFEST");
  CHECK(rejected[0]["data"]["message"] == why.message);
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest of another namespace is refused") {
  start();
  const auto other = test::make_manifest({{"OTHER::Thing", ""}}, "OTHER");
  auto& worker = add_silent_worker("w1");
  worker.announcement.manifest = test::manifest_hash(other);
  worker.manifest_bytes = encode(other);
  worker.announce();
  const auto why = rejection_of(worker);
  CHECK(why.code == "MANIFEST");
  CHECK_THAT(why.message, Contains("OTHER"));
  CHECK(store->manifests().value().empty());  // nobody of OTHER has vouched for it
}

TEST_CASE_METHOD(AdmissionFixture, "a known manifest lets nobody of another namespace in, who is told why") {
  start();
  auto& honest = add_worker("w1");
  settle();
  REQUIRE(honest.accepted());
  auto& other = add_silent_worker("w2", "OTHER");
  other.announcement.manifest = honest.announcement.manifest;
  other.announce();
  const auto why = rejection_of(other);
  CHECK(why.code == "MANIFEST");
  CHECK(why.final);
  CHECK_THAT(why.message, Contains("NS"));
  CHECK(worker_states() == Json{{"w1", "active"}});
}

TEST_CASE_METHOD(AdmissionFixture, "what comes for a manifest that is there already does no harm") {
  start();
  auto& worker = add_worker("w1");
  const auto reply = where_manifest_goes(worker);
  const auto asked = manifest_asked_for(reply);
  worker.alive = true;
  for (const auto& bytes : {worker.manifest_bytes, Bytes("another"), worker.manifest_bytes}) {
    worker.send_reply(asked, reply, ManifestBytes{bytes});
    settle();
  }
  CHECK(worker.answers.size() == 1);
  CHECK(worker.accepted());
  CHECK(worker_states() == Json{{"w1", "active"}});
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that is no manifest, or has a fault, is refused") {
  start();
  SECTION("bytes") {
    auto& worker = add_worker("w1");
    worker.manifest_bytes = "no manifest";
    CHECK(rejection_of(worker).code == "MANIFEST");
  }
  SECTION("bytes whose hash was announced") {
    auto& worker = add_silent_worker("w1");
    worker.manifest_bytes = "no manifest";
    worker.announcement.manifest = sha256_hex(worker.manifest_bytes);
    worker.announce();
    CHECK(rejection_of(worker).code == "MANIFEST");
  }
  SECTION("a parent that is not there") {
    auto& worker = add_worker("w1", test::make_manifest({{"NS::A", "NS::Nowhere"}}));
    const auto why = rejection_of(worker);
    CHECK(why.code == "MANIFEST");
    CHECK_THAT(why.message, Contains("NS::Nowhere"));
  }
  CHECK(worker_states().empty());
  CHECK(store->manifests().value().empty());
}

TEST_CASE_METHOD(AdmissionFixture, "two workers that announce one hash do not vouch for each other") {
  start();
  auto& honest = add_worker("w1");
  auto& liar = add_silent_worker("w2", "OTHER");
  liar.announcement.manifest = honest.announcement.manifest;
  liar.announce();
  settle();
  CHECK(honest.accepted());
  REQUIRE(liar.answers.size() == 1);
  CHECK(liar.answers[0].rejected);
}

TEST_CASE_METHOD(AdmissionFixture, "who announces the hash of another's manifest, and has it not, keeps nobody out") {
  start();
  auto& liar = add_silent_worker("w1", "OTHER");
  auto& honest = add_silent_worker("w2");
  liar.announcement.manifest = honest.announcement.manifest;
  SECTION("it sends another") {}
  SECTION("it sends none") {
    liar.alive = false;
  }
  liar.announce();
  honest.announce();
  for (int i = 0; i < 3 && !honest.accepted(); ++i) {
    liar.announce();
    advance(Millis(1100));
    liar.announce();
    honest.announce();
    settle();
  }
  CHECK(honest.accepted());
  for (const auto& answer : honest.answers) CHECK_FALSE(answer.rejected);
  CHECK_FALSE(liar.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "who sends a wrong manifest twice does no harm to others that wait for it") {
  start();
  auto& liar = add_worker("w1");
  const auto reply = where_manifest_goes(liar);
  auto& honest = add_silent_worker("w2");
  honest.alive = false;
  honest.announce();
  settle();
  const auto asked = manifest_asked_for(reply);
  liar.alive = true;
  for (int i = 0; i < 2; ++i) {
    liar.send_reply(asked, reply, ManifestBytes{"another"});
    settle();
  }
  CHECK(rejection_of(liar).code == "MANIFEST");
  honest.alive = true;
  advance(Millis(1100));
  honest.announce();
  settle();
  CHECK(honest.accepted());
}

TEST_CASE_METHOD(AdmissionFixture,
                 "who takes a worker's id in another namespace speaks for no manifest of that worker") {
  start();
  auto& honest = add_silent_worker("w1");
  auto& liar = *workers.emplace_back(std::make_unique<test::FakeWorker>(broker.connect("liar"), clock, "w1",
                                                                        test::make_manifest({}, "OTHER"), system));
  liar.announcement.manifest = honest.announcement.manifest;
  liar.announce();
  const auto reply = where_manifest_goes(liar);
  honest.announce();
  settle();
  liar.alive = true;
  liar.send_reply(manifest_asked_for(reply), reply, ManifestBytes{"another"});
  settle();
  for (const auto& answer : honest.answers) CHECK_FALSE(answer.rejected);
  advance(Millis(1100));
  honest.announce();
  settle();
  CHECK(honest.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "of manifests that do not come 256 are waited for, the last that were asked for") {
  start();
  auto& first = add_worker("w1");
  const auto reply = where_manifest_goes(first);
  advance(Millis(100));
  for (int i = 0; i < 256; ++i) {
    auto& other = add_silent_worker("x" + std::to_string(i));
    other.alive = false;
    other.announcement.manifest = sha256_hex(std::to_string(i));
    other.announce();
  }
  settle();
  const auto asked = manifest_asked_for(reply);
  first.alive = true;
  first.send_reply(asked, reply, ManifestBytes{first.manifest_bytes});
  settle();
  CHECK_FALSE(first.accepted());
  advance(Millis(100));
  first.announce();
  settle();
  CHECK(first.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "manifests of one namespace that do not come keep none of another out") {
  start();
  auto& honest = add_worker("w1");
  const auto reply = where_manifest_goes(honest);
  advance(Millis(100));
  flood("OTHER");
  auto& later = add_silent_worker("w2", "THIRD");  // for which one of them makes room at once
  later.announce();
  settle();
  CHECK(later.accepted());
  honest.alive = true;
  honest.send_reply(manifest_asked_for(reply), reply, ManifestBytes{honest.manifest_bytes});
  settle();
  CHECK(honest.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that many wait for is one, and leaves its place when it comes") {
  start();
  auto& first = add_worker("w1");
  const auto reply = where_manifest_goes(first);
  for (int i = 0; i < 300; ++i) {
    auto& other = add_silent_worker("w1-" + std::to_string(i));
    other.alive = false;
    other.announce();
  }
  settle();
  first.alive = true;
  first.send_reply(manifest_asked_for(reply), reply, ManifestBytes{first.manifest_bytes});
  settle();
  CHECK(first.accepted());
  flood("OTHER");
  auto& later = add_silent_worker("w2", "THIRD");
  later.announce();
  settle();
  CHECK(later.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that was just asked for makes no room for others of its namespace") {
  start();
  auto& honest = add_worker("w1");
  const auto reply = where_manifest_goes(honest);
  flood("NS");
  honest.alive = true;
  honest.send_reply(manifest_asked_for(reply), reply, ManifestBytes{honest.manifest_bytes});
  settle();
  CHECK(honest.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "parts of manifests of one namespace that do not end cost none of another its own") {
  start();
  auto& honest = add_worker("w1");
  const auto reply = where_manifest_goes(honest);
  const auto asked = manifest_asked_for(reply);
  const auto whole =
      encode(JobReply{store->fleet(), {}, asked.token, WorkerId("w1"), 0, 0, ManifestBytes{honest.manifest_bytes}});
  honest.alive = true;
  honest.send_reply(asked, reply, Part{0, 2, whole.substr(0, 8)});
  broker.set_max_payload(32U << 20U);
  for (int i = 0; i < 6; ++i) {
    auto& greedy = add_silent_worker("x" + std::to_string(i), "OTHER");
    greedy.announcement.manifest = sha256_hex(std::to_string(i));
    greedy.announce();
    const auto theirs = where_manifest_goes(greedy);
    greedy.alive = true;
    greedy.send_reply(manifest_asked_for(theirs), theirs, Part{0, 2, Bytes(30U << 20U, 'x')});
    greedy.alive = false;
    settle();
  }
  honest.send_reply(asked, reply, Part{1, 2, whole.substr(8)});
  settle();
  CHECK(honest.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest in parts may take the place of one whose other parts do not come") {
  start();
  auto& worker = add_worker("w1");
  const auto reply = where_manifest_goes(worker);
  const auto asked = manifest_asked_for(reply);
  const auto whole =
      encode(JobReply{store->fleet(), {}, asked.token, WorkerId("w1"), 0, 0, ManifestBytes{worker.manifest_bytes}});
  worker.alive = true;
  for (const auto& part : {Part{0, 3, "some"}, Part{0, 2, whole.substr(0, 8)}, Part{1, 2, whole.substr(8)}}) {
    worker.send_reply(asked, reply, part);
    settle();
  }
  CHECK(worker.accepted());
}

TEST_CASE_METHOD(AdmissionFixture, "of manifests that nobody serves any more the newest are kept, also over restarts") {
  start();
  add_worker("w1");
  settle();
  const auto serve = [&](int version) {
    auto other = manifest;
    other.version = std::to_string(version) + ".0.0";
    auto& worker = add_worker("x" + std::to_string(version), other);
    settle();
    CHECK(worker.accepted());
    api("workers-drain", {{"id", "x" + std::to_string(version)}});
    advance(Millis(1500));
    remove_worker("x" + std::to_string(version));
    advance(Millis(4000));
  };
  for (int i = 2; i < 22; ++i) serve(i);
  const auto kept = [&] {
    std::vector<std::string> versions;
    for (const auto& row : store->manifests().value()) versions.push_back(row.manifest.version);
    return versions;
  };
  REQUIRE(kept().size() == 1 + 1 + 16);  // that which is served, the newest, and others
  CHECK(kept().front() == "1.0.0");
  CHECK(kept().back() == "21.0.0");
  CHECK(worker_states() == Json{{"w1", "active"}});
  restart();
  CHECK(worker_states() == Json{{"w1", "active"}});
  CHECK(kept().size() == 1 + 16);  // nobody had announced itself when they were looked at
  CHECK(kept().back() == "1.0.0");
}

TEST_CASE_METHOD(AdmissionFixture, "a manifest that comes late lets nobody in who could not come by then") {
  start();
  auto& late = add_silent_worker("w1");
  late.alive = false;
  const auto hears = broker.connect("hears");
  hears->subscribe(Subjects(config.prefix).worker_control("NS", WorkerId("w1"))).value();
  late.announce();
  settle();
  std::vector<Message> heard;
  hears->receive(heard, 10);
  REQUIRE(heard.size() == 1);
  auto& other = *workers.emplace_back(
      std::make_unique<test::FakeWorker>(broker, clock, "w1", test::make_manifest({{"NS::Bag", ""}}), system));
  other.announcement.pool = "site";
  other.announce();  // the id is its by now
  settle();
  REQUIRE(other.accepted());

  const std::string reply(heard[0].reply);
  const auto asked = manifest_asked_for(reply);
  late.alive = true;
  late.send_reply(asked, reply, ManifestBytes{late.manifest_bytes});
  CHECK(rejection_of(late).code == "NAMESPACE");
  CHECK(api("workers")["items"].at(0)["pool"] == "site");
}
