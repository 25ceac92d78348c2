package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap_BreaksBetweenWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                          {""},
		"a  b":                      {"a  b"},
		"one two three":             {"one two", "three"},
		"since 2026-11-27 it waits": {"since", "2026-11-", "27 it", "waits"},
		"計算 ノード 計算":                 {"計算", "ノード", "計算"},
		"計算ノード計算":                   {"計算ノー", "ド計算"},
		"exactly   two blanks":      {"exactly", "two", "blanks"},
		"exactly8 x":                {"exactly8", "x"},
	} {
		if d := cmp.Diff(want, Wrap(text, 8)); d != "" {
			t.Errorf("wrap %q at 8 columns (-want +got):\n%s", text, d)
		}
	}
	if got := Wrap("計算", 1); strings.Join(got, "") != "計算" {
		t.Errorf("wrap a wide character at one column: got %q, want the text", got)
	}
}

func TestPrintDocument_JSONContainsNoControlCharacters(t *testing.T) {
	t.Parallel()
	names := []any{"a\u009b2Jb", "a\x1b[2Jb", "a\x7fb", "a\u202eb", "a\nb", "é€"}
	var out strings.Builder

	p := &Printer{Writer: &out, Format: "json"}
	if err := p.PrintDocument(Object{"names": names}); err != nil {
		t.Fatal(err)
	}

	if text := strings.ReplaceAll(out.String(), "\n", ""); Sanitize(text) != text || !strings.Contains(text, "é€") {
		t.Errorf("JSON on a terminal: got %q, want no control characters, and é€ unchanged", text)
	}
	var same Object
	if err := Decode([]byte(out.String()), &same); err != nil || !cmp.Equal(same["names"], any(names)) {
		t.Errorf("decoded JSON: got %q, error %v; want %q", same["names"], err, names)
	}
}
