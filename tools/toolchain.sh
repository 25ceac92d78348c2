#!/bin/sh
# Fails if the Go toolchain is older than the go line of go.mod requires, because older toolchains have known faults of the standard library;
# if modules or Dockerfiles name different versions of Go; and, with $GOVULNDB, if the vulnerability database that it names knows faults in
# berth's programs or in the standard library with which they are built.
set -eu
cd "$(dirname "$0")/.."

required=$(sed -n 's/^go //p' go.mod)
failed=""
fail() {
	echo "toolchain: $*" >&2
	failed=yes
}
running=$(go env GOVERSION)
running=${running#go}
oldest=$(printf '%s\n' "$required" "${running%% *}" | sort -V | head -n 1)
if [ "$oldest" != "$required" ]; then
	fail "the Go toolchain is $running, but go.mod requires $required; set GOTOOLCHAIN=auto or install Go $required"
fi
for file in $(find . -name go.mod -not -path './.*' -not -path './dist/*'); do
	if [ "$(sed -n 's/^go //p' "$file")" != "$required" ]; then
		fail "$file must have the line 'go $required', as go.mod"
	fi
done
for file in Dockerfile deploy/image/Dockerfile; do
	if ! grep -q "^FROM golang:$required-" "$file" || grep "^FROM golang:" "$file" | grep -qv "golang:$required-"; then
		fail "$file must build with golang:$required, as go.mod requires"
	fi
done
if [ -n "${GOVULNDB:-}" ] && ! "$(go -C tools/lint tool -n govulncheck)" -db "$GOVULNDB" ./worker ./starter; then
	fail "govulncheck knows vulnerabilities; its output is above"
fi
[ -z "$failed" ]
