#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace muster {

/// The sockets that this process has open.
class OpenSockets {
 public:
  OpenSockets();
  /// Ends the connections to `ports`, of whatever address, that have been made since. Their descriptors stay with who
  /// has them, and who waits at one is woken.
  void shut_down_later_ones(const std::vector<std::uint16_t>& ports) const;

 private:
  std::set<std::string> known_;  // as /proc names them
};

}  // namespace muster
