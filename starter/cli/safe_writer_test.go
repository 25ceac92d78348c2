package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// evil is a text that controls a terminal, in each way of which starter knows.
const evil = "é€😀\x1b[2J\u009b31m\u202e\u2066\r\u2028\u0085\x7f計"

func TestTextWriter_ReplacesControlCharactersHoweverTheTextIsSplit(t *testing.T) {
	t.Parallel()
	text := "a\tb\n" + evil + "\n"
	want := "a\tb\n" + Sanitize(evil) + "\n"
	for i := range len(text) {
		for j := i; j < len(text); j++ {
			var out bytes.Buffer
			w := TextWriter(&out)
			for _, part := range []string{text[:i], text[i:j], text[j:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("write %q: got %d, error %v; want %d", part, n, err, len(part))
				}
			}
			if out.String() != want {
				t.Fatalf("parts that end at %d and %d: got %q, want %q", i, j, out.String(), want)
			}
		}
	}
}

func TestTextWriter_ReturnsTheErrorOfItsWriter(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	if _, err := TextWriter(failingWriter{full}).Write([]byte("a")); !errors.Is(err, full) {
		t.Errorf("write: got error %v, want %v", err, full)
	}
}

type failingWriter struct{ error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.error }

func TestJSONWriter_KeepsTheMeaning(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := JSONWriter(&out)
	for _, b := range raw {
		if _, err := w.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	var got string
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != evil || Sanitize(out.String()) != out.String() {
		t.Errorf("JSON %s: got %s, error %v; want the same text without control characters", raw, out.String(), err)
	}
}

// All that a command writes to the output of its session, and the errors, are without control characters.
func TestSession_OutputControlsNoTerminal(t *testing.T) {
	t.Parallel()
	settings, err := ReadSettings([]string{"BERTH_DATA=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &Session{Settings: &settings}
	if err := s.Open(&out); err != nil {
		t.Fatal(err)
	}

	fmt.Fprintln(s.Output.Writer, evil)
	if err := s.Output.PrintList([]Object{{evil: evil}}, []string{evil}); err != nil {
		t.Fatal(err)
	}
	if err := s.Output.PrintObject(Object{evil: Object{evil: evil}}, nil); err != nil {
		t.Fatal(err)
	}
	ReportError(&out, Errorf(ExitOther, evil+"\n  second line", "%s", evil))

	text := strings.ReplaceAll(out.String(), "\n", "")
	if Sanitize(text) != text || !strings.Contains(text, "計") {
		t.Errorf("got %q, want no control characters", out.String())
	}
	if !strings.HasSuffix(out.String(), "\n  second line\n") {
		t.Errorf("advice of two lines: got %q, want both", out.String())
	}
}

func TestWriteTable_CellsControlNoTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := WriteTable(&out, []string{"a"}, [][]string{{evil}, {"x\ny"}}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 4 || Sanitize(strings.Join(lines, "")) != strings.Join(lines, "") {
		t.Errorf("got %q, want three lines without control characters", out.String())
	}
}
