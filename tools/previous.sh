#!/bin/sh
# Builds the programs worker and starter of an earlier version: tools/previous.sh COMMIT-OR-TAG FOLDER
set -eu
[ $# = 2 ] || {
	echo "usage: tools/previous.sh COMMIT-OR-TAG FOLDER" >&2
	exit 2
}
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify --quiet "$1^{commit}") || {
	echo "tools/previous.sh: this repository has no commit or tag $1" >&2
	exit 2
}
mkdir -p "$2"
folder=$(cd "$2" && pwd)
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
trap 'exit 130' INT TERM
git archive --output "$source/source.tar" "$commit"
tar -x -C "$source" -f "$source/source.tar"
cd "$source"
go build -ldflags "-X berth/internal/version.commit=$commit" -o "$folder/" ./worker ./starter
