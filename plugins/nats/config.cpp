#include "config.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "worker_sdk/bus/nats_bus.h"
#include "worker_sdk/bus/nats_url.h"

namespace muster::nats {
namespace {

constexpr std::size_t kMaxName = 255;
constexpr std::string_view kDefaultPort = ":4222";

/// `value` as text that is not empty.
Result<std::string> text_of(const std::string& key, const Json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return invalid_request("config." + key + ": must be a text that is not empty");
  }
  return value.get<std::string>();
}

struct Place {
  std::string_view key;
  std::string* to;
};

/// Copies the texts of an object to where `places` has their keys; `name` is the object's own key with a dot, or empty.
Result<void> copy_texts(const Json& object, const std::string& name, const std::vector<Place>& places) {
  for (const auto& [key, value] : object.items()) {
    const auto place =
        std::find_if(places.begin(), places.end(), [&, &wanted = key](const Place& it) { return it.key == wanted; });
    if (place == places.end()) return invalid_request("config." + name + key + ": unknown key");
    auto text = text_of(name + key, value);
    if (!text) return text.error();
    *place->to = std::move(*text);
  }
  return {};
}

Result<void> parse_tls(const Json& json, BusAccess& server) {
  if (!json.is_object()) return invalid_request("config.tls: must be an object");
  server.tls_ca = server.tls_cert = server.tls_key = "";
  auto copied =
      copy_texts(json, "tls.", {{"ca", &server.tls_ca}, {"cert", &server.tls_cert}, {"key", &server.tls_key}});
  if (!copied) return copied;
  if (server.tls_cert.empty() != server.tls_key.empty())
    return invalid_request("config.tls: cert and key need each other");
  return {};
}

}  // namespace

Result<Config> parse_config(const Json& json, const BusAccess& own) {
  if (!json.is_object()) return invalid_request("config: must be an object");
  Config config;
  if (!json.contains("url")) config.server = own;
  if (json.contains("creds") && json.contains("nkey_seed")) {
    return invalid_request("config.nkey_seed: creds is given too; one of them is enough");
  }
  if (json.contains("creds") || json.contains("nkey_seed")) config.server.creds = config.server.nkey_seed = "";

  Json texts = json;
  if (const auto tls = json.find("tls"); tls != json.end()) {
    if (auto parsed = parse_tls(*tls, config.server); !parsed) return parsed.error();
    texts.erase("tls");
  }
  auto copied = copy_texts(texts, "",
                           {{"url", &config.server.url},
                            {"creds", &config.server.creds},
                            {"nkey_seed", &config.server.nkey_seed},
                            {"domain", &config.domain}});
  if (!copied) return copied.error();
  if (split_servers(config.server.url).empty()) {
    return invalid_request("config.url: is missing, and the worker's own bus is not known");
  }
  if (!config.domain.empty() && !valid_name(config.domain)) {
    return invalid_request("config.domain: must be one token, without dots, blanks and wildcards");
  }
  return config;
}

std::string system_of(const BusAccess& server, std::string_view domain) {
  std::vector<std::string> hosts;
  for (std::string host : split_servers(server.url)) {
    if (const auto scheme = host.find("://"); scheme != host.npos) host.erase(0, scheme + 3);
    if (const auto user = host.rfind('@'); user != host.npos) host.erase(0, user + 1);
    while (!host.empty() && host.back() == '/') host.pop_back();
    std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto port = host.rfind(':');
    if (port == host.npos || host.find(']', port) != host.npos) host += kDefaultPort;  // [::1] has colons, but no port
    hosts.push_back(std::move(host));
  }
  std::sort(hosts.begin(), hosts.end());
  std::string system;
  for (const auto& host : hosts) system += (system.empty() ? "nats:" : ",") + host;
  if (!domain.empty()) system.append("/").append(domain);
  return system;
}

bool valid_name(std::string_view text) {
  const auto bad = [](unsigned char c) { return c <= ' ' || c == '.' || c == '*' || c == '>' || c == 0x7f; };
  return !text.empty() && text.size() <= kMaxName && std::none_of(text.begin(), text.end(), bad);
}

}  // namespace muster::nats
