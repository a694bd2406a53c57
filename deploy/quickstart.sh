#!/bin/sh
# Builds Muster and runs a whole fleet on this machine: bus, coordinator and two workers that take the inventory of /etc.
#
#   deploy/quickstart.sh [OPTIONS OF `muster up`]      --once: one inventory, then stop
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
"$root/deploy/install-packages.sh" build run
(cd "$root" && cmake --preset release && cmake --build --preset release) >&2
exec "$root/build/release/bin/muster" up -c "$root/deploy/quickstart.yaml" "$@"
