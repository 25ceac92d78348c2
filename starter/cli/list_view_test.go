package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestThousands_HaveCommas(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 100: "100", 4312: "4,312", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPrintCSV_TextsAreNoFormulas(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &Session{Output: &Printer{Writer: &out}}
	all := []Object{
		{"name": "=1+1", "n": json.Number("-1")},
		{"name": "@a", "n": nil},
		{"name": "a=b", "n": "+1"},
		{"name": "-a", "n": "\t=1"},
	}
	if err := printCSV(s, []string{"name", "n"}, all); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"name,n", "'=1+1,-1", "'@a,", "a=b,'+1", "'-a,"}
	for i, line := range lines {
		if i < len(want)-1 && line != want[i] || i == len(want)-1 && !strings.HasPrefix(line, want[i]) ||
			strings.Contains(line, ",=") {
			t.Errorf("line %d: got %q, want %q", i, line, want[i])
		}
	}
}

func TestCompareValues_ComparesNumbersAsNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b any
		want int
	}{
		{json.Number("900"), json.Number("1500"), -1},
		{json.Number("9"), json.Number("9"), 0},
		{"900", "1500", 1},
		{"b", "a", 1},
		{nil, "a", -1},
		{json.Number("900"), "100", -1}, // otherwise 1500 < 900 < "9z" < 1500
		{"100", json.Number("900"), 1},
		{json.Number("900"), nil, 1},
	} {
		if got := compareValues(c.a, c.b); got != c.want {
			t.Errorf("compare %v with %v: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
