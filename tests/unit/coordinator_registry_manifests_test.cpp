// Manifests that the fleet serves: which one speaks for a lane, a namespace or a type, how many are kept, and what
// faults they may have.
#include <algorithm>

#include "support/registry_fixture.h"

using namespace muster;
using test::RegistryFixture;

namespace {

Manifest manifest_of_types(std::vector<std::pair<std::string, std::string>> types) {
  Manifest manifest;
  manifest.ns = "NS";
  for (auto& [name, parent] : types) {
    manifest.types.emplace_back();
    manifest.types.back().name = std::move(name);
    manifest.types.back().parent = std::move(parent);
  }
  return manifest;
}

}  // namespace

TEST_CASE_METHOD(RegistryFixture, "a lane's manifest is that of most of its active workers") {
  learn("m1");
  learn("m2");
  CHECK(registry.manifest_of(lane).second == nullptr);
  join("w1", "m1");
  join("w2", "m1");
  clock.advance(Millis(1000));
  join("w3", "m2");
  CHECK(registry.manifest_of(lane).first == "m1");
  CHECK(registry.manifest_of(lane).second->version == "m1");
  SECTION("of two that have the same number, the newest joined decides") {
    beat("w1", 2, true);
    CHECK(registry.manifest_of(lane).first == "m2");
  }
  SECTION("lost workers have no voice") {
    clock.advance(Millis(3100));
    beat("w3");
    expire();
    CHECK(registry.manifest_of(lane).first == "m2");
  }
  CHECK(registry.manifest_of({"NS", "other"}).second == nullptr);
}

TEST_CASE_METHOD(RegistryFixture, "the manifest learnt last is known without any worker") {
  CHECK(registry.latest_manifest("NS").second == nullptr);
  learn("m1");
  learn("m2");
  learn("o1", "OTHER");
  CHECK(registry.latest_manifest("NS").first == "m2");
  CHECK(registry.latest_manifest("OTHER").first == "o1");
  CHECK(registry.manifest("m1")->version == "m1");
  CHECK(registry.manifest("m3") == nullptr);
}

TEST_CASE_METHOD(RegistryFixture,
                 "of manifests that nobody serves the newest are kept, and that which was learnt last") {
  using Hashes = std::vector<std::string>;
  registry = Registry({}, {.others = 2, .other_bytes = 100'000});
  for (const auto* hash : {"m1", "m2", "m3"}) CHECK(learn(hash).empty());
  CHECK(learn("o1", "OTHER").empty());
  join("w1", "m1");
  CHECK(learn("m4").empty());
  CHECK(learn("m5") == Hashes{"m2"});
  CHECK(registry.manifest("m2") == nullptr);
  CHECK(registry.manifest("m1") != nullptr);
  CHECK(registry.latest_manifest("NS").first == "m1");

  SECTION("a lost worker may come back, and serve what it served") {
    clock.advance(kLostAfter + Millis(1));
    expire();
    CHECK(learn("m6") == Hashes{"m3"});
    CHECK(registry.latest_manifest("NS").first == "m6");
    clock.advance(kForgetAfter);
    expire();
    CHECK(learn("m7") == Hashes{"m4", "m1"});
  }
  SECTION("a worker that has left, or serves another one, serves it no more") {
    if (GENERATE(false, true)) {
      join("w1", "m5");
    } else {
      beat("w1", 2, true);
      lose("w1");
    }
    CHECK(learn("m6").back() == "m1");
  }
  SECTION("one that is learnt once more is kept once, as the newest") {
    CHECK(learn("m3").empty());
    CHECK(registry.latest_manifest("NS").first == "m1");
    CHECK(learn("m6") == Hashes{"m4"});
    CHECK(registry.manifest("m3") != nullptr);
  }
  SECTION("large ones are fewer") {
    CHECK(learn("m6", "NS", 200'000) == Hashes{"m3"});
    CHECK(registry.manifest("m6") != nullptr);
    CHECK(learn("m7") == Hashes{"m6"});
  }
  CHECK(registry.manifest("o1") != nullptr);
}

TEST_CASE_METHOD(RegistryFixture, "too many manifests of one namespace keep no others out, and none for good") {
  registry = Registry({}, {.served = 2});
  join("w1", "m1");
  join("w2", "m2");
  CHECK(rejected(announcement("w3", "m1")).empty());
  const auto refused = registry.judge(announcement("w3", "m3"), fleet);
  REQUIRE(refused);
  CHECK(refused->code == "LIMIT");
  CHECK_FALSE(refused->final);
  CHECK(refused->message ==
        "the workers of NS serve 2 different manifests already, as many as may be: start workers of one version and "
        "configuration of the plugin");
  auto other = announcement("x1", "m3");
  other.ns = "OTHER";
  CHECK(rejected(other).empty());
  join("w1", "m2");
  CHECK(rejected(announcement("w3", "m3")).empty());
}

TEST_CASE_METHOD(RegistryFixture, "manifests that are served have a bound in bytes") {
  registry = Registry({}, {.served_bytes = 100'000});
  learn("m1", "NS", 60'000);
  learn("m2", "NS", 60'000);
  CHECK(rejected(announcement("w1", "m1")).empty());
  join("w1", "m1");
  CHECK(rejected(announcement("w2", "m1")).empty());
  const auto refused = registry.judge(announcement("w2", "m2"), fleet);
  REQUIRE(refused);
  CHECK(refused->code == "LIMIT");
  CHECK_FALSE(refused->final);
  CHECK(rejected(announcement("w2", "m3")).empty());  // nobody knows how large it is
}

TEST_CASE_METHOD(RegistryFixture,
                 "the manifest of a namespace is that of most who are there, as they come, change and go") {
  learn("m1");
  learn("m2");
  join("w1", "m1");
  CHECK(registry.latest_manifest("NS").first == "m1");
  join("w1", "m2");
  CHECK(registry.latest_manifest("NS").first == "m2");
  join("w2", "m1");
  join("w3", "m1");
  CHECK(registry.latest_manifest("NS").first == "m1");
  for (const auto* id : {"w1", "w2", "w3"}) lose(id);
  CHECK(registry.latest_manifest("NS").first == "m2");  // learnt last
}

TEST_CASE_METHOD(RegistryFixture,
                 "a type is described by the manifest of most workers, and else by another that is served") {
  const auto learn_types = [&](const std::string& hash, std::vector<std::pair<std::string, std::string>> types) {
    registry.learn(hash, std::make_shared<const Manifest>(manifest_of_types(std::move(types))));
  };
  const auto types = [&] {
    std::vector<std::string> all;
    for (const auto& each : registry.types("NS")) all.push_back(each.type->name + " of " + each.hash);
    std::ranges::sort(all);
    return all;
  };
  using Names = std::vector<std::string>;
  learn_types("m1", {{"NS::A", ""}, {"NS::B", ""}});
  learn_types("m2", {{"NS::A", ""}, {"NS::C", ""}});
  CHECK(types() == Names{"NS::A of m2", "NS::C of m2"});
  CHECK_FALSE(registry.type("NS::B"));  // nobody is there, and it was learnt before
  join("w1", "m1");
  join("w2", "m1");
  join("w3", "m2");
  CHECK(types() == Names{"NS::A of m1", "NS::B of m1", "NS::C of m2"});
  CHECK(registry.type("NS::A").hash == "m1");
  REQUIRE(registry.type("NS::C"));
  CHECK(registry.type("NS::C").hash == "m2");
  CHECK(registry.type("NS::C").manifest == registry.manifest("m2"));
  CHECK(registry.type("NS::C").type->name == "NS::C");
  CHECK_FALSE(registry.type("NS::D"));
  CHECK_FALSE(registry.type("OTHER::A"));
  beat("w3", 2, true);
  CHECK_FALSE(registry.type("NS::C"));  // it takes no more jobs
}

TEST_CASE("a manifest that keeps the rules has no fault") {
  CHECK_FALSE(manifest_fault(manifest_of_types({}), "NS"));
  CHECK_FALSE(manifest_fault(manifest_of_types({{"NS::B", "NS::A"}, {"NS::A", ""}, {"NS::C::D", "NS::B"}}), "NS"));
  CHECK_FALSE(manifest_fault(manifest_of_types({{"NS::Directory", "NS::Directory"}}), "NS"));
}

TEST_CASE("a manifest that breaks a rule is refused, and the fault names the type") {
  const auto fault = [](std::vector<std::pair<std::string, std::string>> types) {
    return manifest_fault(manifest_of_types(std::move(types)), "NS").value_or("");
  };
  CHECK_THAT(fault({{"OTHER::A", ""}}), Catch::Contains("OTHER::A"));
  CHECK_THAT(fault({{"XY::A", ""}}), Catch::Contains("XY::A"));
  CHECK_THAT(fault({{"A", ""}}), Catch::Contains("'A'"));
  CHECK_THAT(fault({{"NS:A", ""}}), Catch::Contains("NS:A"));
  CHECK_THAT(fault({{"NS::A", ""}, {"NS::A", ""}}), Catch::Contains("NS::A"));
  CHECK_THAT(fault({{"NS::A", "NS::Nowhere"}}), Catch::Contains("NS::Nowhere"));
  CHECK_THAT(fault({{"NS::A", "NS::B"}, {"NS::B", "NS::A"}}), Catch::Contains("circle"));
  CHECK_THAT(fault({{"NS::" + std::string(200, 'x'), ""}}), Catch::Contains("xxx"));
  auto batch = manifest_of_types({{"NS::A", ""}});
  batch.types[0].read_batch = 1001;
  CHECK_THAT(manifest_fault(batch, "NS").value_or(""), Catch::Contains("NS::A"));
  CHECK(manifest_fault(manifest_of_types({}), "OTHER"));
  auto many = manifest_of_types({});
  many.types.resize(kMaxTypes + 1);
  CHECK_THAT(manifest_fault(many, "NS").value_or(""), Catch::Contains("4096"));
  auto deep = manifest_of_types({{"NS::A", ""}});
  deep.types[0].schema = std::string(1000, '[') + std::string(1000, ']');
  CHECK_THAT(manifest_fault(deep, "NS").value_or(""), Catch::Contains("NS::A"));
  auto shown = manifest_of_types({{"NS::A", ""}});
  shown.types[0].examples = {"{}", deep.types[0].schema};
  CHECK_THAT(manifest_fault(shown, "NS").value_or(""), Catch::Contains("example") && Catch::Contains("NS::A"));
  auto configured = manifest_of_types({{"NS::A", ""}});
  configured.config_schema = deep.types[0].schema;
  CHECK_THAT(manifest_fault(configured, "NS").value_or(""), Catch::Contains("configuration"));
}

TEST_CASE("a type needs a name of its own behind the namespace") {
  CHECK(manifest_fault(manifest_of_types({{"NS::", ""}}), "NS"));
}
