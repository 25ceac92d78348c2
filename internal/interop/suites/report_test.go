package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are the results of the tests, as results.py prints them.
const lines = `
{"id": "tempest.api.network.a.A.test_passed[id-1]", "status": "success", "details": ""}
{"id": "tempest.api.network.a.A.test_failed[id-2]", "status": "fail", "details": "Traceback: 409\n"}
{"id": "tempest.api.network.a.A.test_skipped[id-3]", "status": "skip", "details": "no router"}
{"id": "setUpClass (tempest.api.network.b.B)", "status": "fail", "details": "Traceback: 500"}
{"id": "tearDownClass (tempest.api.network.a.A)", "status": "fail", "details": "Traceback: 503"}
`

func TestReport_CountsEveryTestOnceAndPrintsProblems(t *testing.T) {
	t.Parallel()
	found := results{}
	if err := parseResults([]byte(lines), found); err != nil {
		t.Fatal(err)
	}
	s, err := parseScope(`\.test_router routers are missing`)
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, name := range []string{"a.A.test_passed[id-1]", "a.A.test_failed[id-2]", "a.A.test_skipped[id-3]", "b.B.test_x[id-4]", "c.C.test_lost[id-5]",
		"c.C.test_router[id-6]"} {
		tests = append(tests, "tempest.api.network."+name)
	}

	var printed strings.Builder
	err = report(&printed, map[string]string{"tempest.api.network": "47"}, tests, s, found)

	if err == nil || err.Error() != "5 problems, want none" {
		t.Errorf("error of the report: got %v, want one about five problems", err)
	}
	want := `FAILED tempest.api.network.a.A.test_failed[id-2]
The suite reports a failure: Traceback: 409

FAILED tempest.api.network.a.A.test_skipped[id-3]
The suite skips the test, but out_of_scope.txt does not list it: no router

FAILED tempest.api.network.b.B.test_x[id-4]
setUpClass (tempest.api.network.b.B): The suite reports a failure: Traceback: 500

FAILED tempest.api.network.c.C.test_lost[id-5]
The suite has not run the test

FAILED tearDownClass (tempest.api.network.a.A)
The suite reports a failure: Traceback: 503

| Suite | Version | Tests | Run | Passed | Failed | Out of scope |
|---|---|---|---|---|---|---|
| ` + "`tempest.api.network`" + ` | tempest 47 | 6 | 5 | 1 | 4 | 1 |
`
	if d := cmp.Diff(want, printed.String()); d != "" {
		t.Errorf("the report differs (-want +got):\n%s", d)
	}
}
