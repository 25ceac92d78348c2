#!/bin/sh
# Prints the value of go build's flag -ldflags that sets the version, the commit and its date of a program. The version is $VERSION, or the tag v… of
# the commit. Without both, and without a git repository, the program has the values that Go's toolchain records.
set -eu
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || true)}
commit=$(git rev-parse --verify --quiet HEAD || true)
date=$(TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || true)
if [ -n "$commit" ] && [ -n "$(git status --porcelain --untracked-files=no)" ]; then
	commit=$commit-dirty
fi
echo "${version:+-X berth/internal/version.number=${version#v}} ${commit:+-X berth/internal/version.commit=$commit} ${date:+-X berth/internal/version.date=$date}"
