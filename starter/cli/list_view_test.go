package cli

import (
	"encoding/json"
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
	} {
		if got := compareValues(c.a, c.b); got != c.want {
			t.Errorf("compare %v with %v: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
