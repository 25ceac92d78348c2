#!/bin/sh
# Builds the files of a release of the current commit twice, from two folders with different names, the second time with an empty cache of
# Go's toolchain, and compares the checksums of all files.
#   tools/release-check.sh [ARCHITECTURE]
# ARCHITECTURE is amd64 or arm64; default: both.
set -eu
cd "$(dirname "$0")/.."

VERSION=${VERSION:-0.0.0-check}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# build FOLDER [ARCHITECTURE]: builds the release in a clone of this repository, and writes its files into FOLDER.files.
build() {
	folder=$work/$1
	git clone --quiet --shared . "$folder"
	"$folder/tools/release.sh" ${2:+-a "$2"} -o "$folder.files"
}
build first "$@"
GOCACHE=$work/cache
export GOCACHE
build another-folder "$@"
diff "$work/first.files/SHA256SUMS" "$work/another-folder.files/SHA256SUMS" || {
	echo "release-check: the files of the two builds differ" >&2
	exit 1
}
echo "release-check: the files of the two builds are equal:"
cat "$work/first.files/SHA256SUMS"
