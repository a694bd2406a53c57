// What this version writes is fixed byte for byte in golden/<Message>-<variant>.bin; the .json beside it is the same
// message for people. MUSTER_ACCEPT=1 rewrites both. golden/v<N>/ holds messages as version N wrote them: they are
// never rewritten and must decode for ever.

#include <capnp/compat/json.h>
#include <capnp/serialize.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "wire/samples.h"
#include "wire/wire_types.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

fs::path golden_dir() {
  const char* source = std::getenv("MUSTER_SOURCE_DIR");
  REQUIRE(source != nullptr);
  return fs::path(source) / "tests/wire/golden";
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void spill(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

kj::Array<capnp::word> words_of(std::string_view bytes) {
  auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
  std::memcpy(words.asBytes().begin(), bytes.data(), words.asBytes().size());
  return words;
}

template <typename T>
std::string to_json(std::string_view bytes) {
  const auto words = words_of(bytes);
  capnp::FlatArrayMessageReader message(words);
  capnp::JsonCodec json;
  json.setPrettyPrint(true);
  return std::string(json.encode(message.getRoot<typename Wire<T>::Root>()).cStr()) + "\n";
}

template <typename T>
Bytes from_json(const std::string& text) {
  capnp::MallocMessageBuilder message;
  const capnp::JsonCodec json;
  json.decode(kj::StringPtr(text.data(), text.size()), message.initRoot<typename Wire<T>::Root>());
  const auto flat = capnp::messageToFlatArray(message);
  return {flat.asChars().begin(), flat.asChars().size()};
}

bool accepting() {
  return std::getenv("MUSTER_ACCEPT") != nullptr;
}

}  // namespace

TEMPLATE_TEST_CASE("messages are written as the golden files have them", "[wire]", MUSTER_MESSAGES) {
  for (const auto& [variant, value] : samples<TestType>()) {
    const auto name = std::string(Wire<TestType>::kName).append("-").append(variant);
    CAPTURE(name);
    const auto bin = golden_dir() / (name + ".bin");
    const auto json = golden_dir() / (name + ".json");
    const auto bytes = encode(value);
    if (accepting()) {
      spill(bin, bytes);
      spill(json, to_json<TestType>(bytes));
    }
    REQUIRE(fs::exists(bin));
    CHECK((slurp(bin) == bytes));
    CHECK(slurp(json) == to_json<TestType>(bytes));

    const auto decoded = decode<TestType>(slurp(bin));
    REQUIRE(decoded.has_value());
    CHECK((*decoded == value));
  }
}

TEMPLATE_TEST_CASE("messages that another implementation wrote decode to the same value", "[wire]", MUSTER_MESSAGES) {
  for (const auto& [variant, value] : samples<TestType>()) {
    const auto name = std::string(Wire<TestType>::kName).append("-").append(variant).append(".json");
    CAPTURE(name);
    const auto decoded = decode<TestType>(from_json<TestType>(slurp(golden_dir() / name)));
    REQUIRE(decoded.has_value());
    CHECK((*decoded == value));
  }
}

TEST_CASE("no golden file is left over", "[wire]") {
  std::size_t expected = 0;
  const auto count = [&expected](auto list) { expected += 2 * list.size(); };
  count(samples<Job>());
  count(samples<JobReply>());
  count(samples<ResultAck>());
  count(samples<Announcement>());
  count(samples<AnnouncementReply>());
  count(samples<Heartbeat>());
  count(samples<RollCall>());
  count(samples<Control>());
  count(samples<Manifest>());
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(golden_dir())) found += entry.is_regular_file() ? 1 : 0;
  CHECK(found == expected);
}

TEMPLATE_TEST_CASE("messages of earlier versions decode with nothing lost", "[wire]", MUSTER_MESSAGES) {
  std::size_t seen = 0;
  for (const auto& version : fs::directory_iterator(golden_dir())) {
    if (!version.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(version)) {
      const auto stem = entry.path().stem().string();
      if (entry.path().extension() != ".bin" || stem.substr(0, stem.find('-')) != Wire<TestType>::kName) continue;
      CAPTURE(entry.path().string());
      ++seen;
      const auto decoded = decode<TestType>(slurp(entry.path()));
      REQUIRE(decoded.has_value());
      // Fields that came later may show up with their defaults; those of the version itself stay as they were.
      const auto then = nlohmann::json::parse(slurp(fs::path(entry.path()).replace_extension(".json")));
      const auto now = nlohmann::json::parse(to_json<TestType>(encode(*decoded)));
      for (const auto& difference : nlohmann::json::diff(then, now)) {
        CAPTURE(difference.dump());
        CHECK(difference.at("op") == "add");
      }
    }
  }
  CHECK(seen > 0);
}

}  // namespace muster::testing
