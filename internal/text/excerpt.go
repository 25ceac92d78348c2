// Package text shortens texts from outside, and checks the cost of JSON texts. A text from outside, such as a
// response of another service or the value of a client, may be long and may be no UTF-8; a part of it in an
// error, a log line or a page never ends within a character.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark stands for the missing part of a text.
const mark = "…"

// Excerpt returns at most `limit` characters of a text; the limit is at least 1. If the text is longer, the
// last character of the excerpt is "…". The result is a text that Temporal and PostgreSQL can store: U+FFFD
// replaces each byte that belongs to no character, and each NUL.
func Excerpt[T ~string | ~[]byte](text T, limit int) string {
	// enough for a character more than the limit
	runes := []rune(string(text[:min(len(text), (limit+1)*utf8.UTFMax)]))
	for i, r := range runes {
		if r == 0 {
			runes[i] = utf8.RuneError
		}
	}
	if len(runes) <= limit {
		return string(runes)
	}
	return string(runes[:limit-1]) + mark
}

// maxSummary is the maximum size of the JSON text of a summary in bytes. Temporal limits a summary to 400
// bytes (the message UserMetadata of its API), and encryption adds less than 60.
const maxSummary = 340

// Summary does the same as Excerpt, with the limit of the summaries of executions and activities: Temporal
// may refuse a request with a longer summary.
func Summary(text string) string {
	text = Excerpt(text, maxSummary) // each character needs at least a byte
	size, cut := len(`""`), 0
	for i, r := range text {
		if size+len(mark) <= maxSummary {
			cut = i
		}
		if size += jsonSize(r); size > maxSummary {
			return text[:cut] + mark
		}
	}
	return text
}

// jsonSize returns the maximum size of a character in a JSON text that package json writes, in bytes.
func jsonSize(r rune) int {
	switch {
	case r < ' ', strings.ContainsRune("<>&\u2028\u2029", r):
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	default:
		return utf8.RuneLen(r)
	}
}

// WithoutMiddle does the same as Excerpt, but it keeps the beginning and the end of the text, with "…"
// between them.
func WithoutMiddle(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return string(runes)
	}
	head := (limit - 1) / 2
	return string(runes[:head]) + mark + string(runes[len(runes)-(limit-1-head):])
}

// OneLine returns at most `limit` characters of a text that another system sent, as one line that contains no
// character that is not printable.
func OneLine[T ~string | ~[]byte](text T, limit int) string {
	line := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, Excerpt(strings.TrimSpace(string(text)), limit))
	return strings.TrimSpace(line)
}
