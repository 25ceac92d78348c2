package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"berth/starter/cli"
)

// emojiPresentation makes some characters wider on some terminals only.
const emojiPresentation = '\uFE0F'

// clean makes one line of text from the server harmless: no character of the result controls the terminal, or
// has a width on which terminals disagree.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == emojiPresentation:
			return -1
		case unicode.Is(unicode.Cf, r):
			return '·'
		}
		return r
	}, cli.Sanitize(s))
}

// fit cuts or pads a clean text to the width, in columns of the terminal.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	s = ansi.TruncateWc(s, width, "…")
	return s + strings.Repeat(" ", max(0, width-cli.Width(s)))
}

// age writes a duration with one or two units, rounded down: 42s, 9m, 3h12m, 5d.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// plural writes a number of objects, for example "2 journal entries".
func plural(count int64, noun string) string {
	if count != 1 {
		if stem, found := strings.CutSuffix(noun, "y"); found {
			noun = stem + "ies"
		} else {
			noun += "s"
		}
	}
	return fmt.Sprintf("%d %s", count, noun)
}
