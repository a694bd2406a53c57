#include "worker_sdk/bus/fleet_file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace muster {
namespace {

constexpr const char* kUsualUrl = "nats://127.0.0.1:4222";

}  // namespace

std::array<std::pair<std::string_view, std::string*>, 7> beside_url(std::string& prefix, NatsOptions& nats) {
  return {{{"prefix", &prefix},
           {"inbox", &nats.inbox},
           {"creds", &nats.creds},
           {"nkey_seed", &nats.nkey_seed},
           {"tls_ca", &nats.tls_ca},
           {"tls_cert", &nats.tls_cert},
           {"tls_key", &nats.tls_key}}};
}

Result<void> read_fleet_file(const std::filesystem::path& data_dir, std::string& prefix, NatsOptions& nats) {
  const auto path = data_dir / kFleetFile;
  std::ifstream file(path);
  if (!file && errno == EACCES) {
    return Error{Errc::kAccessDenied, path.string() + ", which says where the fleet is, may not be read", {}, 0};
  }
  std::getline(file, nats.url);
  if (nats.url.empty()) nats.url = kUsualUrl;
  const auto keys = beside_url(prefix, nats);
  for (std::string line; std::getline(file, line);) {
    const auto name = std::string_view(line).substr(0, line.find('='));
    const auto* const key = std::ranges::find(keys, name, &std::pair<std::string_view, std::string*>::first);
    if (key != keys.end()) *key->second = line.substr(std::min(line.size(), name.size() + 1));
  }
  return {};
}

}  // namespace muster
