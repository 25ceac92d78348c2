#!/bin/sh
# Lets Go's fuzzer run each fuzz test for the given time, for example `tools/fuzz.sh 1m`. Go stores an input that fails in the folder
# testdata/fuzz of the package; from then on, this input is a test case of the package.
set -eu
cd "$(dirname "$0")/.."

failed=""
for found in $(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/func //' | sort); do
	package=$(dirname "${found%%:*}")
	name=${found#*:}
	echo "$package $name"
	go test -vet off -run '^$' -fuzz "^$name\$" -fuzztime "$1" "$package" || failed="$failed $package:$name"
done
if [ -n "$failed" ]; then
	echo "these fuzz tests failed:$failed" >&2
	exit 1
fi
