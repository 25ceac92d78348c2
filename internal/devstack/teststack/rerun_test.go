package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs the tests of packages; the target test of the Makefile uses it.
const script = "../../../tools/test.sh"

// module is a Go module whose tests append a line to the file $RUNS on each run.
const module = `package module

import (
	"os"
	"strings"
	"testing"
)

// record returns how many times the test has run, this run included.
func record(t *testing.T) int {
	name := t.Name() + "\n"
	f, err := os.OpenFile(os.Getenv("RUNS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(name); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(os.Getenv("RUNS"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(all), name)
}

func TestFailsOnce(t *testing.T) {
	t.Run("case", func(t *testing.T) {
		if record(t) == 1 {
			t.Error("the first run fails")
		}
	})
}

func TestFailsAlways(t *testing.T) {
	record(t)
	t.Error("each run fails")
}

func TestFailsToo(t *testing.T) { TestFailsAlways(t) }

func TestFailsAgain(t *testing.T) { TestFailsAlways(t) }

func TestFailsAlso(t *testing.T) { TestFailsAlways(t) }

func TestFailsLikewise(t *testing.T) { TestFailsAlways(t) }

func TestPasses(t *testing.T) { record(t) }
`

// TestRerun_PassesAndNamesFlakyTestsOnly runs the script for a module with tests that fail once, and with
// tests that fail always.
func TestRerun_PassesAndNamesFlakyTestsOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tests string
		passes      bool
		flaky       string
		runs        map[string]int
	}{
		{"no failure", "TestPasses", true, "", map[string]int{"TestPasses": 1}},
		{"fails once", "TestPasses|TestFailsOnce", true, "  example.org/module.TestFailsOnce: passed in run 2\n" +
			"  example.org/module.TestFailsOnce/case: passed in run 2\n", map[string]int{"TestPasses": 1, "TestFailsOnce/case": 2}},
		{"fails always", "TestFailsAlways", false, "", map[string]int{"TestFailsAlways": 3}},
		{"one of two fails always", "TestFailsOnce|TestFailsAlways", false, "  example.org/module.TestFailsOnce: passed in run 2\n" +
			"  example.org/module.TestFailsOnce/case: passed in run 2\n", map[string]int{"TestFailsOnce/case": 2, "TestFailsAlways": 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, output, runs := runScript(t, c.tests)
			if passes := code == 0; passes != c.passes {
				t.Errorf("got exit code %d, want 0: %t; output:\n%s", code, c.passes, output)
			}
			_, flaky, _ := strings.Cut(output, "\n=== Flaky tests, which failed and then passed\n")
			if flaky != c.flaky {
				t.Errorf("got flaky tests:\n%swant:\n%s", flaky, c.flaky)
			}
			for test, want := range c.runs {
				if got := runs[test]; got != want {
					t.Errorf("%s: got %d runs, want %d", test, got, want)
				}
			}
		})
	}
}

// TestRerun_ManyFailuresAreNotRunAgain checks that a broken program does not cost the time of more runs.
func TestRerun_ManyFailuresAreNotRunAgain(t *testing.T) {
	t.Parallel()
	code, output, runs := runScript(t, "TestFails.*")
	if code == 0 || strings.Contains(output, "Flaky") {
		t.Errorf("got exit code %d, want another one than 0, and no flaky tests; output:\n%s", code, output)
	}
	if len(runs) != 6 {
		t.Errorf("got runs of %d tests, want 6", len(runs))
	}
	for test, n := range runs {
		if n != 1 {
			t.Errorf("%s: got %d runs, want 1", test, n)
		}
	}
}

// runScript runs the tests of the module whose names match the regular expression. runScript returns the exit
// code and the output of the script, and how many times each test ran.
func runScript(t *testing.T, tests string) (code int, output string, runs map[string]int) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.org/module\n\ngo 1.26.0\n", "module_test.go": module} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, "runs")
	cmd := exec.CommandContext(t.Context(), path, "./...", "-count", "1", "-run", "^("+tests+")$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RUNS="+record)
	combined, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(record)
	if err != nil {
		t.Fatalf("%v; output of the script:\n%s", err, combined)
	}
	runs = map[string]int{}
	for line := range strings.Lines(string(lines)) {
		runs[strings.TrimSpace(line)]++
	}
	return cmd.ProcessState.ExitCode(), string(combined), runs
}
