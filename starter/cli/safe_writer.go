package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// TextWriter returns a writer that replaces the control characters in a text, except line breaks and tabs.
// All that starter prints for people passes through a TextWriter. A command that prints a text of a server as
// it is therefore gives this text no control of the terminal.
func TextWriter(w io.Writer) io.Writer { return &safeWriter{w: w, change: sanitizeLines} }

// JSONWriter returns a writer that replaces the control characters in a JSON text, except line breaks, by
// their escape sequences in JSON. The text has the same meaning, but not the same bytes.
func JSONWriter(w io.Writer) io.Writer { return &safeWriter{w: w, change: escapeControls} }

// safeWriter changes what is written to w. It is for one goroutine.
type safeWriter struct {
	w      io.Writer
	change func(string) string
	begun  []byte // the first bytes of a character whose other bytes follow
}

func (s *safeWriter) Write(p []byte) (int, error) {
	text := append(s.begun, p...)
	end := wholeCharacters(text)
	s.begun = slices.Clone(text[end:])
	if _, err := io.WriteString(s.w, s.change(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// wholeCharacters returns the length of a text without an incomplete character at its end.
func wholeCharacters(text []byte) int {
	for i := len(text) - 1; i >= 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRune(text[i:]) {
				break
			}
			return i
		}
	}
	return len(text)
}

// sanitizeLines does the same as Sanitize for a text of several lines, which may contain tabs.
func sanitizeLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return sanitizeRune(r)
	}, s)
}
