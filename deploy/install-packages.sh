#!/bin/sh
# Installs the Debian packages of some lists in deploy/packages that are not installed yet.
#
#   deploy/install-packages.sh LIST...      lists: build, run, test, bench, peers, peers-node
#
# Needs root or sudo for that; without either it prints the command line and exits with 1. Services that packages bring
# along are neither started nor enabled.
set -eu

lists=$(cd "$(dirname "$0")/packages" && pwd)

if ! command -v dpkg-query >/dev/null; then
  echo "not a Debian system: make sure that what $lists/*.txt name is installed" >&2
  exit 0
fi

missing=
for list in "$@"; do
  # shellcheck disable=SC2013  # a word a line
  for package in $(grep -v '^#' "$lists/$list.txt"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
  done
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  as_root=sudo
else
  echo "these packages are missing; install them with:" >&2
  echo "  apt-get install --no-install-recommends$missing" >&2
  exit 1
fi

# Debian asks this script before it starts a service: 101 is no.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap '$as_root rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
  $as_root chmod 755 $policy
fi
clusters=/etc/postgresql-common/createcluster.conf
case $missing in
  *postgresql*) [ -e $clusters ] || { $as_root mkdir -p "${clusters%/*}" && echo 'create_main_cluster = false' | $as_root tee $clusters >/dev/null; } ;;
esac
$as_root apt-get update -qq >&2
# shellcheck disable=SC2086  # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
  -o Dpkg::Options::=--force-confold $missing >&2
for service in nats-server beanstalkd gearman-job-server redis-server; do  # whoever needs one starts its own
  case $missing in
    *$service*) $as_root systemctl disable $service >/dev/null 2>&1 || true ;;
  esac
done
