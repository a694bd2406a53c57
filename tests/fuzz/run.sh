#!/bin/sh
# Runs every decoder's fuzz target for some seconds, seeded with the golden files.
#
#   tests/fuzz/run.sh [SECONDS [BUILD_DIR]]      default: 30 build/fuzz
#
# Inputs that were found are kept in BUILD_DIR/corpus and used again. Exit 1 when a target fails; the input that made
# it fail is then BUILD_DIR/corpus/crash-*.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-30}
build=${2:-$root/build/fuzz}
status=0

for fuzzer in "$build"/bin/fuzz_*; do
  [ -x "$fuzzer" ] || { echo "no fuzz targets in $build/bin: cmake --preset fuzz && cmake --build --preset fuzz" >&2; exit 1; }
  message=${fuzzer##*/fuzz_}
  corpus=$build/corpus/$message
  mkdir -p "$corpus"
  for seed in "$root/tests/wire/golden/$message"-*.bin; do
    [ -e "$seed" ] && cp "$seed" "$corpus/"
  done
  echo "== $message"
  "$fuzzer" -max_total_time="$seconds" -max_len=16384 -rss_limit_mb=1024 -timeout=5 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$build/corpus/crash-$message-" "$corpus" || status=1
done
exit $status
