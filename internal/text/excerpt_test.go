package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"berth/internal/text"
)

func TestExcerpt_CutsByRunesAndSaysSo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"short", "abc", "abc"},
		{"as long as the limit", "abcde", "abcde"},
		{"too long", "abcdef", "abcd…"},
		{"runes of two bytes, as long as the limit", "äöüéß", "äöüéß"},
		{"runes of two bytes, too long", "äöüéßx", "äöüé…"},
		{"runes of four bytes, as long as the limit", "𝕏𝕏𝕏𝕏𝕏", "𝕏𝕏𝕏𝕏𝕏"},
		{"runes of four bytes, too long", "𝕏𝕏𝕏𝕏𝕏𝕏", "𝕏𝕏𝕏𝕏…"},
		{"very long", strings.Repeat("☃", 1<<16), "☃☃☃☃…"},
		{"invalid UTF-8, short", "a\xffb", "a\uFFFDb"},
		{"invalid UTF-8, too long", "\xff\xfe\xfd\xfc\xfb\xfa", "\uFFFD\uFFFD\uFFFD\uFFFD…"},
		{"the end of a rune is missing", "abc\xe2\x98", "abc\uFFFD\uFFFD"},
		{"NUL, which PostgreSQL cannot store", "a\x00b", "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := text.Excerpt(tt.text, 5); got != tt.want {
				t.Errorf("excerpt of at most 5 characters of %.20q: got %q, want %q", tt.text, got, tt.want)
			}
			if got := text.Excerpt([]byte(tt.text), 5); got != tt.want {
				t.Errorf("excerpt of at most 5 characters of the bytes %.20q: got %q, want %q",
					tt.text, got, tt.want)
			}
		})
	}
}

func TestWithoutMiddle_KeepsBothEnds(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                  "",
		"abcdef":            "abcdef",
		"abcdefg":           "ab…efg",
		"äöüéßñå":           "äö…ßñå",
		"𝕏☃𝕏☃𝕏☃𝕏☃":          "𝕏☃…☃𝕏☃",
		"\xffbcdef":         "\uFFFDbcdef",
		"a\xffcdef\xe2\x98": "a\uFFFD…f\uFFFD\uFFFD",
	} {
		if got := text.WithoutMiddle(in, 6); got != want {
			t.Errorf("%q without its middle, at most 6 characters: got %q, want %q", in, got, want)
		}
	}
}

// FuzzExcerpt checks that an excerpt is valid UTF-8 of at most as many characters as the limit, and that an
// excerpt of an excerpt is the same.
func FuzzExcerpt(f *testing.F) {
	f.Add("grün ☃ 𝕏", uint8(3))
	f.Add("\xf0\x9d\x95", uint8(0))
	f.Fuzz(func(t *testing.T, s string, n uint8) {
		limit := int(n) + 1
		for name, cut := range map[string]func(string, int) string{"excerpt": text.Excerpt[string], "without the middle": text.WithoutMiddle} {
			got := cut(s, limit)
			if !utf8.ValidString(got) || utf8.RuneCountInString(got) > limit {
				t.Errorf(
					"%s of at most %d characters of %q: got %q, want at most as many characters of valid UTF-8",
					name, limit, s, got,
				)
			}
			if again := cut(got, limit); again != got {
				t.Errorf(
					"%s of at most %d characters of %q: got %q, and of this result %q, want the same",
					name, limit, s, got, again,
				)
			}
		}
	})
}

func TestSummary_FitsIntoTheLimitOfTemporal(t *testing.T) {
	t.Parallel()
	for _, short := range []string{"", "web-1", strings.Repeat("x", 338), strings.Repeat("☃", 112)} {
		if got := text.Summary(short); got != short {
			t.Errorf("summary of a short text: got %q, want %q", got, short)
		}
	}
	for _, character := range []string{"x", "ä", "☃", "𝕏", "<", `"`, "\t", "\x01", "\u2028", "\xff", "\x00"} {
		long := strings.Repeat(character, 339)
		encoded, err := json.Marshal(text.Summary(long))
		if err != nil {
			t.Fatal(err)
		}
		if len(encoded) > 340 || len(encoded) < 100 || !strings.HasSuffix(string(encoded), `…"`) {
			t.Errorf("summary of the character %q, repeated: got %d bytes, want 100 to 340 and a mark at the end: %s",
				character, len(encoded), encoded)
		}
	}
}
