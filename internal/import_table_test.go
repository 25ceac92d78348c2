package internal

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the import rules in docs/architecture.md")

const (
	architecturePage = "../docs/architecture.md"
	tablesBegin      = "-run ImportTables -update. Do not edit. -->\n"
	tablesEnd        = "<!-- End of the generated tables. -->\n"
)

// TestImportTables_EqualRules fails when docs/architecture.md has other import rules than packageRules and
// reserved. To update the page, run `go test ./internal -run ImportTables -update`.
func TestImportTables_EqualRules(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(architecturePage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(page), tablesBegin)
	got, tail, ends := strings.Cut(rest, tablesEnd)
	if !begins || !ends {
		t.Fatalf("docs/architecture.md: want a line that ends with %q, and after it the line %q",
			tablesBegin, tablesEnd)
	}
	want := "\n" + packageTable() + "\n" + reservedTable() + "\n"
	if *update {
		if err := os.WriteFile(architecturePage, []byte(head+tablesBegin+want+tablesEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf(
			"docs/architecture.md: got other import rules than internal/rooms_test.go has; to update the page, run go test ./internal "+
				"-run ImportTables -update (-page +rules):\n%s",
			d,
		)
	}
}

// packageTable renders packageRules.
func packageTable() string {
	var b strings.Builder
	b.WriteString("| Package | Which of berth's packages it may import | Reason |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(packageRules)) {
		r := packageRules[name]
		may := "nothing"
		if len(r.may) > 0 {
			may = quoteAll(r.may)
		}
		if len(r.never) > 0 {
			may += "; never " + quoteAll(r.never)
		}
		if r.pure {
			may += "; no I/O, no clock, no goroutine"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, may, quotePaths(r.why))
	}
	return b.String()
}

// reservedTable renders the variable `reserved`.
func reservedTable() string {
	var b strings.Builder
	b.WriteString("| Reserved package | Which packages may import it | Reason |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		var users []string
		includes := func(allowed string) bool { return isWithin(allowed, name) || isWithin(name, allowed) }
		for user, r := range packageRules {
			if slices.ContainsFunc(r.always, includes) {
				users = append(users, user)
			}
		}
		may := "only tests"
		if len(users) > 0 {
			may = quoteAll(users)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, may, quotePaths(reserved[name]))
	}
	return b.String()
}

// quoteAll lists packages in alphabetical order.
func quoteAll(packages []string) string {
	var all []string
	for _, name := range slices.Sorted(slices.Values(packages)) {
		parent, subtree := strings.CutSuffix(name, "/...")
		if name = "`" + parent + "`"; subtree {
			name += " and all packages below it"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

var packagePath = regexp.MustCompile(`\binternal/\w+(/\w+)*`)

// quotePaths puts the paths of packages in a sentence in backticks.
func quotePaths(sentence string) string { return packagePath.ReplaceAllString(sentence, "`$0`") }
