package main

import (
	"os"
	"strings"
	"testing"
)

// pageFile is the page that shows out_of_scope.txt.
const pageFile = "../../../docs/compatibility.md"

func TestOutOfScope_EveryLineHasPatternAndReason(t *testing.T) {
	t.Parallel()
	s, err := parseScope(outOfScope)
	if err != nil {
		t.Fatal(err)
	}
	if len(s) == 0 {
		t.Error("out_of_scope.txt has no line, want at least one")
	}
	for _, wrong := range []string{"pattern", "pattern ", "( reason"} {
		if _, err := parseScope(wrong); err == nil {
			t.Errorf("parse the line %q: got no error, want one", wrong)
		}
	}
}

func TestOutOfScope_PageShowsEveryLine(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "<!-- out_of_scope.txt -->\n```text\n")
	shown, _, _ := strings.Cut(block, "```")
	if shown != outOfScope {
		t.Errorf(
			"the block after <!-- out_of_scope.txt --> in docs/compatibility.md differs from out_of_scope.txt; copy the file to the block\ngot:\n%s",
			shown,
		)
	}
}
