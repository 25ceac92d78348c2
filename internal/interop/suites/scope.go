package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// outOfScope lists the tests that need a feature that berth does not have: one regular expression and its
// reason in each line.
//
//go:embed out_of_scope.txt
var outOfScope string

// exception is a line of out_of_scope.txt.
type exception struct {
	pattern *regexp.Regexp
	reason  string
}

type scope []exception

// parseScope reads lines in the form "PATTERN REASON". Lines that begin with # are comments.
func parseScope(text string) (scope, error) {
	var s scope
	for _, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("out_of_scope.txt: the line %q has no reason", line)
		}
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("out_of_scope.txt: %w", err)
		}
		s = append(s, exception{compiled, reason})
	}
	return s, nil
}

// excludes reports whether a line of out_of_scope.txt matches the test.
func (s scope) excludes(test string) bool {
	for _, e := range s {
		if e.pattern.MatchString(test) {
			return true
		}
	}
	return false
}

// unused returns the patterns that match none of the tests.
func (s scope) unused(tests []string) (patterns []string) {
	for _, e := range s {
		used := false
		for _, test := range tests {
			used = used || e.pattern.MatchString(test)
		}
		if !used {
			patterns = append(patterns, e.pattern.String())
		}
	}
	return patterns
}
