#!/bin/sh
# Prints where the temporal CLI is: the one that BERTH_TEMPORAL_CLI names, one on PATH, else the pinned one, which
# Go builds once and keeps in its cache. A cold build takes minutes, so it says how it goes.
set -eu
cd "$(dirname "$0")/.."

if [ -n "${BERTH_TEMPORAL_CLI:-}" ]; then
	echo "$BERTH_TEMPORAL_CLI"
	exit
fi
if command -v temporal; then
	exit
fi

# Without cgo, so that installing a C compiler does not make it stale.
export CGO_ENABLED=0
path=$(mktemp)
trouble=$(mktemp)
trap 'rm -f "$path" "$trouble"' EXIT
go -C tools/temporal tool -n temporal >"$path" 2>"$trouble" &
build=$!
trap 'kill $build 2>/dev/null; exit 130' INT TERM
waited=0
while kill -0 $build 2>/dev/null; do
	sleep 0.1
	waited=$((waited + 1))
	if [ $((waited % 100)) = 0 ]; then
		echo "building the temporal CLI, which is kept for later: $((waited / 10)) s so far, about 240 s on two cores" >&2
	fi
done
if ! wait $build; then
	cat "$trouble" >&2
	exit 1
fi
cat "$path"
