package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"berth/internal/devstack"
)

// suites are the prefixes of the tests' names, by suite, with the Python package that contains the suite.
var suites = []struct{ name, pkg string }{
	{"tempest.api.network", "tempest"},
	{"neutron_tempest_plugin.api", "neutron-tempest-plugin"},
}

// suite runs Tempest in a workspace, which is the folder dir.
type suite struct {
	ctx    context.Context
	python python
	dir    string
}

func (s suite) command(program string, arguments ...string) *exec.Cmd {
	cmd := s.python.command(program, arguments...)
	// Tempest lists its workspaces in a file in the home folder.
	cmd.Env = append(cmd.Env, "HOME="+filepath.Dir(s.dir))
	if program != "tempest" || arguments[0] != "init" {
		cmd.Dir = s.dir
	}
	return cmd
}

// prepare creates the workspace.
func (s suite) prepare(conf string) error {
	if _, err := output(s.ctx, s.command("tempest", "init", s.dir)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "etc", "tempest.conf"), []byte(conf), 0o600)
}

// list returns the names of all tests of the suites.
func (s suite) list() ([]string, error) {
	progress("list the tests")
	out, err := output(s.ctx, s.command("tempest", "run", "--list-tests"))
	var tests []string
	for _, line := range strings.Fields(string(out)) {
		for _, suite := range suites {
			if strings.HasPrefix(line, suite.name+".") {
				tests = append(tests, line)
			}
		}
	}
	slices.Sort(tests)
	return tests, err
}

// versions returns the version of each suite.
func (s suite) versions() (map[string]string, error) {
	found := map[string]string{}
	for _, suite := range suites {
		const show = "import sys, importlib.metadata; print(importlib.metadata.version(sys.argv[1]))"
		out, err := output(s.ctx, exec.Command(string(s.python), "-c", show, suite.pkg))
		if err != nil {
			return nil, err
		}
		found[suite.name] = strings.TrimSpace(string(out))
	}
	return found, nil
}

// results has the problem of each test that Tempest has run, or "" if the test has passed.
type results map[string]string

// resultsProgram converts Tempest's results to JSON.
//
//go:embed results.py
var resultsProgram string

// run runs the tests in two processes and returns their results.
func (s suite) run(tests []string) (results, error) {
	list := filepath.Join(s.dir, "tests")
	if err := os.WriteFile(list, []byte(strings.Join(tests, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	progress("run %d tests", len(tests))
	run := s.command("tempest", "run", "--concurrency", "2", "--load-list", list)
	read, write := io.Pipe()
	run.Stdout, run.Stderr = write, os.Stderr
	go printOutcomes(read)
	// Tempest also exits with an error if a test fails.
	_ = devstack.Run(s.ctx, run)
	_ = write.Close()
	if err := context.Cause(s.ctx); err != nil {
		return nil, err
	}
	stream, err := output(s.ctx, s.command("stestr", "last", "--subunit"))
	if err != nil {
		return nil, err
	}
	convert := exec.Command(string(s.python), "-c", resultsProgram)
	convert.Stdin = bytes.NewReader(stream)
	lines, err := output(s.ctx, convert)
	if err != nil {
		return nil, err
	}
	return parseResults(lines)
}

// outcome is a line of Tempest's output that tells the outcome of a test. Tempest prints much more about a failed test.
var outcome = regexp.MustCompile(`^\{\d+\} .* \.\.\. `)

// printOutcomes prints the outcome of every test as soon as Tempest tells it.
func printOutcomes(said io.Reader) {
	for lines := bufio.NewReader(said); ; {
		line, err := lines.ReadString('\n')
		if outcome.MatchString(line) {
			fmt.Print(line)
		}
		if err != nil {
			return
		}
	}
}

// parseResults reads the lines that results.py prints.
func parseResults(lines []byte) (results, error) {
	found := results{}
	for decoder := json.NewDecoder(bytes.NewReader(lines)); ; {
		var test struct{ ID, Status, Details string }
		if err := decoder.Decode(&test); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("read Tempest's results: %w", err)
		}
		switch test.Status {
		case "success":
			found[test.ID] = ""
		case "skip":
			found[test.ID] = "Tempest skips the test, but out_of_scope.txt does not list it: " + test.Details
		case "fail":
			found[test.ID] = "Tempest reports a failure: " + test.Details
		}
	}
}

var class = regexp.MustCompile(`^(.*)\.[^.]+$`)

// problem returns the problem of a test, or "" if the test has passed. If the set-up of a test's class fails, the result has the name of the
// set-up.
func (r results) problem(test string) string {
	if problem, ok := r[test]; ok {
		return problem
	}
	name, _, _ := strings.Cut(test, "[")
	setUp := "setUpClass (" + class.ReplaceAllString(name, "$1") + ")"
	if problem, ok := r[setUp]; ok {
		return setUp + ": " + problem
	}
	return "Tempest has not run the test"
}
