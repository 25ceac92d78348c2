#!/bin/sh
# Prints the path of the Python of a virtual environment in the user's cache with the packages of tools/NAME.txt, for example
# `tools/venv.sh suites`. The script creates the environment once, unless -n is given.
set -eu
cd "$(dirname "$0")"

create=yes
if [ "$1" = -n ]; then
	create=""
	shift
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth/$1-$(cksum <"$1.txt" | tr ' ' -)
python=$cache/bin/python
if [ ! -x "$python" ]; then
	[ -n "$create" ] || exit 1
	echo "installing the packages of tools/$1.txt into $cache" >&2
	mkdir -p "${cache%/*}"
	# Fill a temporary folder and rename it at the end: another run may do the same now.
	fresh=$(mktemp -d "$cache.XXXXXX")
	trap 'rm -rf "$fresh"' EXIT
	if ! { python3 -m venv "$fresh" && "$fresh/bin/python" -m pip install -q --disable-pip-version-check -r "$1.txt"; } >"$fresh/log" 2>&1; then
		cat "$fresh/log" >&2
		exit 1
	fi
	mv -T "$fresh" "$cache" 2>/dev/null || [ -x "$python" ]
fi
echo "$python"
