package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"berth/starter/cli"
)

// Names are what members of any project choose. Bash inserts the common beginning of several completions
// as it is, and the script of the completion evaluates the command line at the next Tab.
func TestCompletion_OffersNoWordThatAShellInterprets(t *testing.T) {
	t.Parallel()
	stub, url := newAPIStub(t)
	environ := []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + url, "TEMPORAL_ADDRESS=127.0.0.1:1"}
	var want []string
	for _, name := range []string{"web-1", "計算.a_b@c+d/e", "10.0.0.1"} {
		stub.add("ports", cli.Object{"name": name})
		want = append(want, name)
	}
	for _, name := range []string{
		"foo`touch x`a", "foo`touch x`b", "foo$(touch x)", "${HOME}", "a;b", "a&b", "a|b", "a>b", "a<b", "a*", "a?", "[a]", "{a,b}", "a b", "a\tb",
		"~root", "=ls", "!!", "#a", "a:4", "'a", `"a`, `a\`, "a\nb", "a\x1b[2Jb", "a\u202eb", "--url=http://192.0.2.1", "-h",
	} {
		want = append(want, stub.add("ports", cli.Object{"name": name})["id"].(string))
	}
	var out, errs bytes.Buffer
	if err := runIn(t.Context(), &cli.Session{}, []string{"__complete", "port", "show", ""}, environ, &out, &errs); err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSpace(out.String()), "\n")
	words = words[:len(words)-1] // the last line tells the shell how to complete
	slices.Sort(words)
	slices.Sort(want)
	if !slices.Equal(words, want) {
		t.Errorf("words of the completion: got %q, want %q: the ID in place of each name that a shell interprets",
			words, want)
	}
}
