#!/bin/sh
# Runs all static checks: the version of the Go toolchain, gofmt, go vet, staticcheck, workflowcheck, and the check of the licences of the modules in berth's programs.
set -eu
cd "$(dirname "$0")/.."

tools/toolchain.sh
unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l)
if [ -n "$unformatted" ]; then
	echo "gofmt is needed for:" >&2
	echo "$unformatted" >&2
	exit 1
fi
go vet ./...
"$(go -C tools/lint tool -n staticcheck)" ./...
"$(go -C tools/lint tool -n workflowcheck)" ./workflows/...
go -C tools/dependencies vet .
go -C tools/dependencies test .
go -C tools/charts vet .
go -C tools/charts test .
go -C tools/dependencies run . -C "$PWD" -npm "$PWD/tools/vendor.txt" licenses ./worker ./starter
echo "lint: toolchain, gofmt, vet, staticcheck, workflowcheck and licences found no problems"
