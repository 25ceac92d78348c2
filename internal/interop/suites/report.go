package main

import (
	"fmt"
	"io"
	"strings"
)

// counts is a row of the table: the numbers of a suite's tests.
type counts struct{ tests, run, passed, failed, outOfScope int }

// count counts the tests of a suite. Every test that the scope (the list of tests to leave out) does not
// exclude has a result.
func count(name string, tests []string, s scope, r results) (c counts) {
	for _, test := range tests {
		if !strings.HasPrefix(test, name+".") {
			continue
		}
		c.tests++
		switch {
		case s.excludes(test):
			c.outOfScope++
			continue
		case r.problem(test) == "":
			c.passed++
		default:
			c.failed++
		}
		c.run++
	}
	return c
}

// report prints every problem and the table. It returns an error if there is a problem.
func report(w io.Writer, versions map[string]string, tests []string, s scope, r results) error {
	failed := 0
	for _, test := range tests {
		if problem := r.problem(test); !s.excludes(test) && problem != "" {
			failed++
			fmt.Fprintf(w, "FAILED %s\n%s\n\n", test, strings.TrimSpace(problem))
		}
	}
	for name, problem := range r {
		if strings.HasPrefix(name, "tearDownClass") && problem != "" {
			failed++
			fmt.Fprintf(w, "FAILED %s\n%s\n\n", name, strings.TrimSpace(problem))
		}
	}
	fmt.Fprint(
		w,
		"| Suite | Version | Tests | Run | Passed | Failed | Out of scope |\n|---|---|---|---|---|---|---|\n",
	)
	for _, suite := range suites {
		c := count(suite.name, tests, s, r)
		if c.tests == 0 {
			continue // the suite has no selected test
		}
		fmt.Fprintf(
			w,
			"| `%s` | %s %s | %d | %d | %d | %d | %d |\n",
			suite.name, suite.pkg, versions[suite.name], c.tests, c.run, c.passed, c.failed,
			c.outOfScope,
		)
	}
	if failed > 0 {
		return fmt.Errorf("%d problems, want none", failed)
	}
	return nil
}
