#!/bin/sh
# Builds the plugin in this folder against the installed SDK, and lets a fleet of its own run it.
set -eu
# guide: build
cmake -G Ninja -S . -B build
cmake --build build
ctest --test-dir build --output-on-failure
# end: build
# guide: up
mkdir -p my-notes
printf '[ ] milk\n[x] bread\n' > my-notes/shopping
muster up --once
# end: up
# guide: keyed
echo "open sesame" > my-notes/.key
NOTES_KEY="open sesame" muster up --once -c keyed.yaml
# end: keyed
