#!/bin/sh
# Runs all static checks: gofmt, go vet, staticcheck and workflowcheck.
set -eu
cd "$(dirname "$0")/.."

unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l)
if [ -n "$unformatted" ]; then
	echo "gofmt is needed for:" >&2
	echo "$unformatted" >&2
	exit 1
fi
go vet ./...
"$(go -C tools/lint tool -n staticcheck)" ./...
"$(go -C tools/lint tool -n workflowcheck)" ./workflows/...
echo "lint: gofmt, vet, staticcheck and workflowcheck found no problems"
