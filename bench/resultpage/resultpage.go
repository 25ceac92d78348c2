// Package resultpage keeps tables in pages of the documentation equal to the results of a measurement. Each
// table stands between two comments of the page, which name the command that writes the table.
package resultpage

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of the results into the pages of the documentation")

// end is the comment after each table.
const end = "<!-- End of the generated part. -->\n"

// Tables are tables of one page that are generated from one file of results.
type Tables struct {
	Page    string            // path of the page in the repository
	Source  string            // path of the file of results in the repository
	Command string            // command that writes the tables, without -update
	Root    string            // path of the repository
	Content map[string]string // Markdown of each table by its name
}

// Check fails the test if a table of the page differs from its content. With the flag -update, Check writes
// the tables into the page instead.
func (s Tables) Check(t *testing.T) {
	t.Helper()
	file := s.Root + "/" + s.Page
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, want := string(raw), string(raw)
	for name, table := range s.Content {
		if want, err = replace(want, s.begin(name), table); err != nil {
			t.Fatalf("%s: %v", s.Page, err)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s differs from %s; to update the page, run %s -update (-results +page):\n%s", s.Page, s.Source, s.Command, d)
	}
}

// begin returns the comment before a table.
func (s Tables) begin(name string) string {
	return fmt.Sprintf("<!-- Generated from %s by %s -update: %s. Do not edit. -->\n", s.Source, s.Command, name)
}

// replace replaces what stands between the two comments of a table.
func replace(page, begin, table string) (string, error) {
	head, rest, found := strings.Cut(page, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("no line %q, or after it no line %q", begin, end)
	}
	return head + begin + "\n" + strings.Trim(table, "\n") + "\n\n" + end + tail, nil
}
