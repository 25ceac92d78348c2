package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
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

func TestPrintDocument_ContainsNoControlCharacters(t *testing.T) {
	t.Parallel()
	names := []any{
		"a\u009b2Jb", "a\x1b[2Jb", "a\x7fb", "a\u202eb", "a\u2066b", "a\u2028b", "a\u0085b", "a\nb", "é€",
		"a\n\u202eb", "\u202e: #", "'\u202e'", "\u202e\"", "\\u202e\u202e",
	}
	given := Object{"names": names, "of keys": Object{"a\u202eb": "c"}}
	for format, decode := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": yaml.Unmarshal} {
		var out strings.Builder
		if err := (&Printer{Writer: &out, Format: format}).PrintDocument(given); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(out.String(), "\n", "")
		if Sanitize(text) != text || !strings.Contains(text, "é€") {
			t.Errorf("%s on a terminal: got %q, want no control characters, and é€ unchanged", format, text)
		}
		var same Object
		if err := decode([]byte(out.String()), &same); err != nil || !cmp.Equal(same, given) {
			t.Errorf("decoded %s: error %v, difference (-want +got):\n%s", format, err, cmp.Diff(given, same))
		}
	}
}
