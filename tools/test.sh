#!/bin/sh
# Runs the tests of Go packages with gotestsum: tools/test.sh "PACKAGE..." [FLAG-OF-GO-TEST...]
# If at most five tests fail, test.sh runs each of them again, twice at most. The exit code is 0 if every test has passed at last. A test that
# failed and then passed is flaky: test.sh prints the names of the flaky tests at the end, because each of them needs a repair.
set -u

packages=$1
shift
gotestsum=$(go -C "${0%/*}/lint" tool -n gotestsum) || exit
report=$(mktemp) || exit
trap 'rm -f "$report"' EXIT
trap 'exit 130' INT TERM
"$gotestsum" --hide-summary skipped --format-hide-empty-pkg --packages "$packages" --rerun-fails=2 --rerun-fails-max-failures=5 \
	--rerun-fails-run-root-test --rerun-fails-report "$report" -- "$@"
code=$?
# A line of the report is: package.Test: 2 runs, 1 failures
flaky=$(sed -n 's/^\(.*\): \([0-9]*\) runs, \([0-9]*\) failures$/\1 \2 \3/p' "$report" | awk '$2 > $3 { print "  " $1 ": passed in run " $2 }')
if [ -n "$flaky" ]; then
	printf '\n=== Flaky tests, which failed and then passed\n%s\n' "$flaky"
fi
exit $code
