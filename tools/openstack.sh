#!/bin/sh
# Prints the path of a Python with the OpenStack clients that the tests run: that of `openstack` on PATH, /usr/bin/python3, or a
# virtual environment in the user's cache with the versions of tools/openstack.txt. Creates that once, unless -n is given.
set -eu
cd "$(dirname "$0")"

has_clients() {
	"$1" -c '
from importlib.util import find_spec
raise SystemExit(not all(map(find_spec, ("openstackclient", "osc_placement", "blazarclient"))))' 2>/dev/null
}

script=$(command -v openstack || true)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth/openstack-$(cksum <openstack.txt | tr ' ' -)
for python in $([ -z "$script" ] || sed -n '1s/^#! *\([^ ]*\)$/\1/p' "$script") /usr/bin/python3 "$cache/bin/python"; do
	if has_clients "$python"; then
		echo "$python"
		exit
	fi
done
[ "${1:-}" != -n ] || exit 1

echo "installing the OpenStack clients into $cache" >&2
mkdir -p "${cache%/*}"
# Fill a temporary folder and rename it at the end: another run may do the same now.
fresh=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
if ! { python3 -m venv "$fresh" && "$fresh/bin/python" -m pip install -q --disable-pip-version-check -r openstack.txt; } >"$fresh/log" 2>&1; then
	cat "$fresh/log" >&2
	echo "install python3-openstackclient, python3-osc-placement and python3-blazarclient, or python3-venv" >&2
	exit 1
fi
mv -T "$fresh" "$cache" 2>/dev/null || has_clients "$cache/bin/python"
echo "$cache/bin/python"
