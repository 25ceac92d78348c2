#!/bin/sh
# Prints the path of a Python with the OpenStack clients that the tests run: the Python of the program `openstack` on PATH,
# /usr/bin/python3, or that of a virtual environment in the user's cache with the versions of tools/openstack.txt. The script creates this
# environment once, unless -n is given.
set -eu
cd "$(dirname "$0")"

script=$(command -v openstack || true)
for python in $([ -z "$script" ] || sed -n '1s/^#! *\([^ ]*\)$/\1/p' "$script") /usr/bin/python3; do
	if "$python" -c '
from importlib.util import find_spec
raise SystemExit(not all(map(find_spec, ("openstackclient", "osc_placement", "blazarclient"))))' 2>/dev/null; then
		echo "$python"
		exit
	fi
done
if [ "${1:-}" = -n ]; then
	exec ./venv.sh -n openstack
elif ! ./venv.sh openstack; then
	echo "install python3-openstackclient, python3-osc-placement and python3-blazarclient, or python3-venv" >&2
	exit 1
fi
