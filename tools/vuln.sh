#!/bin/sh
# Looks for known vulnerabilities in berth's programs and in the tools that the modules below tools pin: the temporal CLI, the Temporal server,
# nfpm, the linters and the program that draws charts. Needs the Go vulnerability database: the one on the network, or the copy that $GOVULNDB names (file:///path).
set -eu
cd "$(dirname "$0")/.."

govulncheck=$(go -C tools/lint tool -n govulncheck)
found=""
check() {
	echo "vuln: $*"
	"$govulncheck" ${GOVULNDB:+-db "$GOVULNDB"} "$@" || found=yes
}
check ./...
check -C tools/dependencies ./...
check -C tools/charts ./...
for module in lint release temporal; do
	for tool in $(go -C tools/$module list -f '{{.ImportPath}}' tool); do
		# Without cgo, as tools/temporal.sh builds the CLI, so that Go finds the program in its cache.
		check -mode binary "$(CGO_ENABLED=0 go -C tools/$module tool -n "$tool")"
	done
done
if [ -n "$found" ]; then
	echo "vuln: some checks failed; their output is above" >&2
	exit 1
fi
