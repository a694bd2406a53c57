#include <algorithm>

#include "worker_sdk/bus/bus.h"

namespace muster {

std::string_view Message::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Header::name);
  return found == headers.end() ? std::string_view{} : std::string_view(found->value);
}

}  // namespace muster
