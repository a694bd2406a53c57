#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "coordinator/store.h"

namespace muster {

/// What a resource's id is made of. It names the row, so that no index of ids is needed, and is a ULID like all others:
/// 48 bits of milliseconds, 16 bits from the fleet, 64 bits of the row.
struct ResourceKey {
  std::uint64_t millis = 0;  // of first_seen, since 1970
  std::uint16_t fleet = 0;
  RowId row = 0;
  bool operator==(const ResourceKey&) const = default;
};

ResourceKey resource_key(WallTime first_seen, std::uint16_t fleet, RowId row);
/// The 16 bits that ids of this fleet's resources share.
std::uint16_t fleet_mark(const FleetId& fleet);

/// Writes the 26 characters over what `id` holds.
void format_resource_id(const ResourceKey& key, ResourceId& id);
/// In either case of letters; none when it is not a ULID.
std::optional<ResourceKey> parse_resource_id(std::string_view text);

}  // namespace muster
