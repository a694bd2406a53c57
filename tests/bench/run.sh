#!/bin/sh
# What Muster costs beside what the machine itself charges: each benchmark in turn with its yardstick.
#
#   tests/bench/run.sh [NAME…] [--quick] [--check] [--peers] [--rounds N] [--resources N] [--page N] [--bytes N] [--types N]
#     [--filtered SHARE] [--changed SHARE]
#
#   tests/bench/run.sh micro [--benchmark_filter=NAME…]   parts by themselves, with Google Benchmark
#
# Builds release first; Debian packages that are missing are installed. A table goes to stderr, a line of JSON for each
# figure to stdout. --quick: a tenth of everything. --check: exit with 1 when a figure is beyond its floor. --peers: also
# other job systems, whose packages it installs (`run.sh peers --peers`: these only). --help: all.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/deploy/install-packages.sh" build run bench
cd "$root"
cmake --preset release -DMUSTER_BENCH=ON >&2
cmake --build --preset release --target bench >&2
export MUSTER_BIN_DIR="$root/build/release/bin" MUSTER_SOURCE_DIR="$root"
if [ "${1:-}" = micro ]; then
  shift
  exec "$MUSTER_BIN_DIR/bench_micro" "$@"
fi
for word; do
  [ "$word" = --peers ] || continue
  modules=$(mktemp -d)
  trap 'rm -rf "$modules"' EXIT
  "$root/tests/bench/peers/install.sh" "$modules"
  NODE_PATH="$modules/node_modules" "$MUSTER_BIN_DIR/muster_bench" "$@"
  exit
done
exec "$MUSTER_BIN_DIR/muster_bench" "$@"
