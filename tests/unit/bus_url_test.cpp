#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "support/scratch.h"
#include "worker_sdk/bus/nats_bus.h"
#include "worker_sdk/bus/nats_url.h"
#include "worker_sdk/bus/nkey.h"
#include "worker_sdk/bus/sign_in_file.h"

using namespace muster;

TEST_CASE("a URL for logs names no password") {
  CHECK(redact_url("nats://127.0.0.1:4222") == "nats://127.0.0.1:4222");
  CHECK(redact_url("nats://user:secret@host:4222") == "nats://***@host:4222");
  CHECK(redact_url("nats://token@host") == "nats://***@host");
  CHECK(redact_url("tls://u:p@ss@host:1,nats://u:q@other:2") == "tls://***@host:1,nats://***@other:2");
  CHECK(redact_url("user:secret@host") == "***@host");
  CHECK(redact_url("nats://u:sec,ret@host:1,nats://other:2") == "nats://***@host:1,nats://other:2");
  CHECK(redact_url("nats://first:1,tls://u:s@e,c,ret@host:1") == "nats://first:1,tls://***@host:1");
  CHECK(redact_url("u:sec,ret@host") == "***@host");
  CHECK(redact_url("").empty());
}

TEST_CASE("a list of servers is split") {
  CHECK(split_servers("nats://a, tls://b ,,") == std::vector<std::string>{"nats://a", "tls://b"});
  CHECK(split_servers("").empty());
  CHECK(wants_tls({"nats://a", "tls://b"}));
  CHECK_FALSE(wants_tls({"nats://tls"}));
}

TEST_CASE("a discovered server is addressed with the configured login") {
  CHECK(with_credentials_of("tls://u:p@a:1", "nats://b:2") == "tls://u:p@b:2");
  CHECK(with_credentials_of("nats://a:1", "nats://b:2") == "nats://b:2");
}

TEST_CASE("a server has the port that its URL names, or the usual one") {
  CHECK(port_of("nats://u:p@host:1234") == 1234);
  CHECK(port_of("host:1234/") == 1234);
  CHECK(port_of("tls://[::1]:1234") == 1234);
  for (const char* usual : {"nats://host", "host", "nats://u:1@host", "[::1]", "tls://[fe80::1]/"}) {
    CHECK(port_of(usual) == 4222);
  }
  for (const char* none : {"host:", "host:x", "host:65536"}) CHECK(port_of(none) == 0);
}

TEST_CASE("a server has the host that its URL names") {
  CHECK(host_of("tls://u:p@nats.example.org:1234") == "nats.example.org");
  CHECK(host_of("localhost/") == "localhost");
  CHECK(host_of("tls://[fe80::1]:1234") == "fe80::1");
}

TEST_CASE("an NKey seed gives its public key") {
  // The pair that the NATS documentation shows.
  constexpr std::string_view kSeed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
  constexpr std::string_view kKey = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
  CHECK(*nkey_public_of_seed(kSeed) == kKey);
  CHECK(*nkey_public_of_seed("-----BEGIN USER NKEY SEED-----\n" + std::string(kSeed) + "\n------END") == kKey);
}

TEST_CASE("a damaged seed is refused and not repeated") {
  const std::string damaged = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3AY";
  for (const std::string& text : {std::string(), std::string("SU"), damaged, damaged.substr(0, 40)}) {
    const auto key = nkey_public_of_seed(text);
    REQUIRE_FALSE(key);
    CHECK(key.error().code == Errc::kInvalidRequest);
    CHECK(key.error().message.find("CSSL3") == std::string::npos);
  }
}

TEST_CASE("a file to sign in with is read whole, or it is said what is wrong with it") {
  const test::Scratch scratch;
  const std::string path = scratch.path / "file";
  const auto code = [](const Result<std::string>& read) { return read ? "" : errc_name(read.error().code); };
  CHECK(read_sign_in_file(path).error().message == path + ": cannot be read: No such file or directory");
  std::ofstream(path) << "SU\n\nx";
  CHECK(read_sign_in_file(path).value() == "SU\n\nx");
  CHECK(code(read_sign_in_file(scratch.path)) == "INVALID_REQUEST");
  const std::string no_file = ": is no regular file, which it has to be: it is read again at each connection";
  CHECK(read_sign_in_file("/dev/zero").error().message == "/dev/zero" + no_file);
  const std::string pipe = scratch.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_sign_in_file(pipe).error().message == pipe + no_file);  // at once: nobody writes to it
  CHECK(read_sign_in_file(path, 5).value() == "SU\n\nx");
  CHECK(code(read_sign_in_file(path, 4)) == "INVALID_REQUEST");
}
