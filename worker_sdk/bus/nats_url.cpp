#include "worker_sdk/bus/nats_url.h"

#include <algorithm>
#include <charconv>

#include "worker_sdk/bus/nats_bus.h"

namespace muster {
namespace {

constexpr std::string_view kTlsScheme = "tls://";
constexpr std::uint16_t kUsualPort = 4222;

/// Parts of scheme://userinfo@address; scheme and userinfo keep their separators, so that joined they are the whole.
struct UrlParts {
  std::string_view scheme, userinfo, address;
};

UrlParts parts_of(std::string_view url) {
  UrlParts parts;
  if (const auto mark = url.find("://"); mark != std::string_view::npos) {
    parts.scheme = url.substr(0, mark + 3);
    url.remove_prefix(mark + 3);
  }
  if (const auto at = url.rfind('@'); at != std::string_view::npos) {
    parts.userinfo = url.substr(0, at + 1);
    url.remove_prefix(at + 1);
  }
  parts.address = url;
  return parts;
}

}  // namespace

std::vector<std::string> split_servers(std::string_view url) {
  std::vector<std::string> servers;
  while (!url.empty()) {
    const std::size_t comma = std::min(url.find(','), url.size());
    std::string server(url.substr(0, comma));
    std::erase_if(server, [](char c) { return c == ' ' || c == '\t'; });
    if (!server.empty()) servers.push_back(std::move(server));
    url.remove_prefix(std::min(comma + 1, url.size()));
  }
  return servers;
}

std::string with_credentials_of(std::string_view configured, std::string_view discovered) {
  const UrlParts own = parts_of(configured);
  std::string url(own.scheme);
  url.append(own.userinfo).append(parts_of(discovered).address);
  return url;
}

std::string host_of(std::string_view server) {
  const std::string_view address = parts_of(server).address;
  if (address.starts_with('[')) return std::string(address.substr(1, address.find(']') - 1));
  return std::string(address.substr(0, address.find_first_of(":/")));
}

std::uint16_t port_of(std::string_view server) {
  std::string_view address = parts_of(server).address;
  address.remove_prefix(std::min(address.size(), address.find(']') + 1));  // the colons of [::1] are no port's
  const auto colon = address.find(':');
  if (colon == std::string_view::npos) return kUsualPort;
  address.remove_prefix(colon + 1);
  std::uint16_t port = 0;
  std::from_chars(address.data(), address.data() + address.size(), port);
  return port;
}

bool wants_tls(const std::vector<std::string>& servers) {
  return std::ranges::any_of(servers, [](const std::string& server) { return server.starts_with(kTlsScheme); });
}

std::string redact_url(std::string_view url) {
  std::vector<std::string> shown;
  for (const std::string& server : split_servers(url)) {
    const UrlParts parts = parts_of(server);
    std::string scheme(parts.scheme);
    // What looks like a server before it may be where a password begins that has a comma in it.
    for (; scheme.empty() && !parts.userinfo.empty() && !shown.empty(); shown.pop_back()) {
      scheme = parts_of(shown.back()).scheme;
    }
    shown.push_back(scheme.append(parts.userinfo.empty() ? "" : "***@").append(parts.address));
  }
  std::string text;
  for (const std::string& server : shown) text += (text.empty() ? "" : ",") + server;
  return text;
}

}  // namespace muster
