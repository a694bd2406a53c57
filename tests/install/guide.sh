#!/bin/sh
# Keeps the code that documents show equal to the example that is compiled and run, notes/.
#
#   guide.sh check DOCUMENT...       fails when a block is not what it says it is
#   guide.sh write DOCUMENT...       pastes the blocks anew
#   guide.sh lines N FILE REGION     fails when the region has N lines of code or more
#
# Each block of cpp, cmake, yaml or sh follows a line `<!-- paste FILE -->` or `<!-- paste FILE REGION -->`. A region of a
# file stands between the comments `guide: REGION` and `end: REGION`, each on a line of its own; there may be others in it.
set -eu

cd "$(dirname "$0")/notes"

# Awk functions: region(file, name, out) puts the lines of a region, or of the whole file, into out[1..n] and returns n.
region_functions='
  function fail(message) {
    print (FNR > 0 ? FILENAME ":" FNR ": " : "") message > "/dev/stderr"
    failed = 1
  }
  function region(file, name, out,    line, words, n, inside, ended, read) {
    n = 0
    inside = name == ""
    while ((read = (getline line < file)) > 0) {
      if (line ~ /^ *(\/\/|#) (guide|end): [a-z-]+$/) {
        split(line, words, " ")
        if (words[3] == name) inside = words[2] == "guide:"
        if (words[3] == name && !inside) ended = 1
      } else if (inside) {
        out[++n] = line
      }
    }
    close(file)
    if (read < 0) fail("there is no file " file)
    else if (n == 0 || (name != "" && !ended)) fail(file " has no region " name)
    return n
  }
'

# The document with its blocks pasted anew.
paste_blocks() {
  awk "$region_functions"'
    /^ *```/ && in_block { in_block = 0; pasted = 0; print; next }
    in_block { if (!pasted) print; next }
    /^ *```/ {
      in_block = 1
      print
      if (file != "") {
        n = region(file, name, lines)
        for (i = 1; i <= n; i++) print lines[i]
        pasted = 1
      } else if ($1 ~ /^```(cpp|cmake|yaml|sh)$/) {
        fail("a block of code without `<!-- paste FILE -->` before it")
      }
      file = ""
      next
    }
    file != "" { fail("no block after `<!-- paste " file " -->`"); file = "" }
    /^<!-- paste / { file = $3; name = $4 == "-->" ? "" : $4 }
    { print }
    END { if (in_block || file != "") fail("the last block does not end"); exit failed }
  ' "$1"
}

# Lines that are neither empty nor a comment alone.
count_lines() {
  awk "$region_functions"'
    BEGIN {
      n = region(ARGV[1], ARGV[2], lines)
      for (i = 1; i <= n; i++) if (lines[i] !~ /^ *((\/\/|#).*)?$/) count++
      print count + 0
      exit failed
    }
  ' "$1" "$2"
}

command=${1-}
[ $# -eq 0 ] || shift
case $command in
  check | write)
    pasted=$(mktemp)
    trap 'rm -f "$pasted"' EXIT
    for document; do
      case $document in /*) ;; *) document=$OLDPWD/$document ;; esac
      paste_blocks "$document" >"$pasted"
      if [ "$command" = write ]; then
        cat "$pasted" >"$document"
      elif ! diff -u "$document" "$pasted"; then
        echo "$document shows code that is not in the example: tests/install/guide.sh write $document" >&2
        exit 1
      fi
    done
    ;;
  lines)
    lines=$(count_lines "$2" "$3")
    echo "$2, $3: $lines lines of code"
    if [ "$lines" -ge "$1" ]; then
      echo "a type takes less than $1 lines: make the SDK easier, not the example thinner" >&2
      exit 1
    fi
    ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
