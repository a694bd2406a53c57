#!/bin/sh
# Installs what `run.sh --peers` compares with: Debian packages, and those of npm into FOLDER.
#
#   tests/bench/peers/install.sh FOLDER
#
# What cannot be installed is told in a line, and left out of the comparison.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
packages="$here/../../../deploy/install-packages.sh"
"$packages" peers || echo "peers: not all packages of deploy/packages/peers.txt can be installed" >&2
command -v npm >/dev/null || "$packages" peers-node || true
if ! command -v npm >/dev/null; then
  echo "peers: no npm, so neither nats.js nor BullMQ" >&2
  exit 0
fi
cp "$here/package.json" "$1"
npm install --prefix "$1" --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error >&2 ||
  echo "peers: npm installs neither nats.js nor BullMQ" >&2
