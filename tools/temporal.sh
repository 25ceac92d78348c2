#!/bin/sh
# Prints the path of the temporal CLI: $BERTH_TEMPORAL_CLI, the one on PATH, or the version of tools/temporal/go.mod. Go builds this version
# once and keeps it in Go's build cache. The build takes minutes, so the script reports its progress.
set -eu
cd "$(dirname "$0")/.."

if [ -n "${BERTH_TEMPORAL_CLI:-}" ]; then
	echo "$BERTH_TEMPORAL_CLI"
	exit
fi
# The path without links, because make links bin/temporal to it, and bin may be in PATH.
if found=$(command -v temporal); then
	readlink -f "$found"
	exit
fi

# The build does not use cgo, so that the installation of a C compiler does not invalidate the cached build.
export CGO_ENABLED=0
path=$(mktemp)
errors=$(mktemp)
trap 'rm -f "$path" "$errors"' EXIT
go -C tools/temporal tool -n temporal >"$path" 2>"$errors" &
build=$!
trap 'kill $build 2>/dev/null; exit 130' INT TERM
waited=0
while kill -0 $build 2>/dev/null; do
	sleep 0.1
	waited=$((waited + 1))
	if [ $((waited % 100)) = 0 ]; then
		echo "building the temporal CLI once: $((waited / 10)) s elapsed; the first build takes minutes" >&2
	fi
done
if ! wait $build; then
	cat "$errors" >&2
	exit 1
fi
cat "$path"
