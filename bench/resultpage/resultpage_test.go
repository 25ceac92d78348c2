package resultpage

import "testing"

const page = `# Page

<!-- Generated from results.json by go test ./bench -run Tables -update: times. Do not edit. -->

| old |

<!-- End of the generated part. -->

Text.
`

func TestReplace_ChangesOnlyTheTable(t *testing.T) {
	t.Parallel()
	s := Tables{Source: "results.json", Command: "go test ./bench -run Tables"}

	got, err := replace(page, s.begin("times"), "\n| new |\n")

	want := `# Page

<!-- Generated from results.json by go test ./bench -run Tables -update: times. Do not edit. -->

| new |

<!-- End of the generated part. -->

Text.
`
	if err != nil || got != want {
		t.Errorf("page with a new table: got error %v and\n%s\nwant\n%s", err, got, want)
	}
}

func TestReplace_RefusesAPageWithoutThePart(t *testing.T) {
	t.Parallel()
	s := Tables{Source: "results.json", Command: "go test ./bench -run Tables"}
	for _, begin := range []string{s.begin("costs"), "Text.\n"} {
		if got, err := replace(page, begin, "| new |"); err == nil {
			t.Errorf("a table after %q: got no error and\n%s\nwant an error", begin, got)
		}
	}
}
