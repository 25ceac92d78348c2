package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// results has the problem of each test that has run, or "" if the test has passed.
type results map[string]string

// outcome matches a line of the output of Tempest or stestr that tells the outcome of a test. About a failed
// test, Tempest and stestr print many other lines.
var outcome = regexp.MustCompile(`^\{\d+\} .* \.\.\. `)

// printOutcomes prints the outcome of every test as soon as it is known.
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

// parseResults reads the lines that results.py prints, and adds the results to found.
func parseResults(lines []byte, found results) error {
	for decoder := json.NewDecoder(bytes.NewReader(lines)); ; {
		var test struct{ ID, Status, Details string }
		if err := decoder.Decode(&test); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the results: %w", err)
		}
		switch test.Status {
		case "success":
			found[test.ID] = ""
		case "skip":
			found[test.ID] = "The suite skips the test, but out_of_scope.txt does not list it: " + test.Details
		case "fail":
			found[test.ID] = "The suite reports a failure: " + test.Details
		}
	}
}

var class = regexp.MustCompile(`^(.*)\.[^.]+$`)

// problem returns the problem of a test, or "" if the test has passed. If the set-up of a test's class has
// failed, the results have no entry for the test, but an entry with the name of the set-up.
func (r results) problem(test string) string {
	if problem, ok := r[test]; ok {
		return problem
	}
	name, _, _ := strings.Cut(test, "[")
	setUp := "setUpClass (" + class.ReplaceAllString(name, "$1") + ")"
	if problem, ok := r[setUp]; ok {
		return setUp + ": " + problem
	}
	return "The suite has not run the test"
}
