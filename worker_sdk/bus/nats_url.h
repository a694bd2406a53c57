#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The servers of a comma-separated list, without blanks.
std::vector<std::string> split_servers(std::string_view url);

/// Address of a server that another one told of, with scheme and credentials of `configured`.
std::string with_credentials_of(std::string_view configured, std::string_view discovered);

/// The host that a server's URL names: a name or an address, without brackets.
std::string host_of(std::string_view server);

/// The port that a server's URL names, or the usual one. 0: what stands there is none.
std::uint16_t port_of(std::string_view server);

/// Whether one of the servers asks for TLS by its scheme.
bool wants_tls(const std::vector<std::string>& servers);

}  // namespace muster
