#!/bin/sh
# Builds everything with the address and undefined-behaviour sanitizers and runs the tests.
#
#   tests/run.sh [--all] [OPTIONS OF ctest]      e.g. tests/run.sh -R config
#
# --all is what CI runs: before that the format check, each of the product's sources compiled by itself, the tests of
# threads under the thread sanitizer, some seconds of fuzzing, and some thousand simulated fleets, with the product as it
# is and made wrong on purpose (a release build takes a thirtieth of the sanitizers' time). All but the second compile
# sources in groups (CMAKE_UNITY_BUILD), which takes a quarter of the time where nothing is built yet. Debian packages
# that are missing are installed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
deploy/install-packages.sh build run test

step() { printf '\n== %s\n' "$*"; }

check_format() {
  find coordinator plugins schema tests worker_sdk \( -name '*.h' -o -name '*.cpp' \) -print0 |
    xargs -0 clang-format --dry-run -Werror
}

# In a group a source may live on what another one includes. Only what the compiler says is of interest: it writes
# nothing, which takes half of the time.
compile_each() {
  cmake --preset dev -B build/each -DMUSTER_SANITIZE= -DMUSTER_TESTS=OFF
  # shellcheck disable=SC2046  # a list of paths
  ninja -C build/each $(ninja -C build/each -t targets rule CUSTOM_COMMAND | grep -E '\.(h|c\+\+)$')
  ninja -C build/each -t compdb | sed -n 's/^ *"command": "\(.*\.cpp\)",$/\1/p' | sed 's/\\"/"/g; s/\\\\/\\/g' |
    sed -n 's/ -MD -MT [^ ]* -MF [^ ]* -o [^ ]* -c / -fsyntax-only /p' >build/each/checks
  wc -l <build/each/checks
  tr '\n' '\0' <build/each/checks | xargs -0 -P "$(nproc)" -n 1 sh -c
}

# Builds the tests of one label only.
thread_tests() {
  cmake --preset tsan $groups
  names=$(ctest --test-dir build/tsan -N -L threads | sed -n 's/^ *Test *#[0-9]*: //p')
  # shellcheck disable=SC2086  # a list of words
  cmake --build build/tsan --target $names
  ctest --preset tsan
}

fuzz() {
  cmake --preset fuzz $groups
  cmake --build --preset fuzz
  tests/fuzz/run.sh 5
}

simulate() {
  cmake --preset sim $groups -DMUSTER_MUTATIONS=ON
  cmake --build --preset sim
  build/sim/bin/muster_sim --seeds 1..3500
  ctest --test-dir build/sim -R simulation_mutations --output-on-failure
}

groups=
debug=
if [ "${1-}" = --all ]; then
  shift
  groups=-DCMAKE_UNITY_BUILD=ON
  debug='-DCMAKE_CXX_FLAGS_DEBUG=-Og -g1'  # half as large; the lines of a finding, and nothing else for a debugger
  step format && check_format
  step sources && compile_each
  step threads && thread_tests
  step fuzz && fuzz
  step simulation && simulate
  step tests
fi
cmake --preset dev $groups ${debug:+"$debug"}
cmake --build --preset dev
ctest --preset dev "$@"
