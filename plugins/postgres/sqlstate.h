#pragma once

#include <string>
#include <string_view>

#include "schema/result.h"

namespace muster::postgres {

/// What an error of the server means to the fleet.
/// `sqlstate`  five characters; empty when no answer came from the server: kServiceUnavailable
/// `message`   primary message; tells apart internal errors of the server, which it never translates
Errc errc_of(std::string_view sqlstate, std::string_view message = {});

/// An error of the connection's start, which libpq gives as text only: in verbose form, with the SQLSTATE between
/// severity and message.
struct StartError {
  std::string sqlstate;  // of the last server that answered; empty: none did
  std::string message;   // without the lines that name places in the server's source
};
StartError parse_start_error(std::string_view verbose);

}  // namespace muster::postgres
