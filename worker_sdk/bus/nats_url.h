#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The servers of a comma-separated list, without blanks.
std::vector<std::string> split_servers(std::string_view url);

/// Address of a server that another one told of, with scheme and credentials of `configured`.
std::string with_credentials_of(std::string_view configured, std::string_view discovered);

/// Whether one of the servers asks for TLS by its scheme.
bool wants_tls(const std::vector<std::string>& servers);

}  // namespace muster
