package cli

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width returns the number of columns that a text without control characters has on a terminal.
func Width(s string) int { return ansi.StringWidthWc(s) }

// Wrap breaks a text without control characters into lines of at most the given number of columns, between
// words if it can. A text that fits stays as it is, with its blanks.
func Wrap(s string, width int) []string {
	if width <= 0 || Width(s) <= width {
		return []string{s}
	}
	var lines []string
	line := ""
	for word := range strings.SplitAfterSeq(s, " ") {
		if line != "" && Width(line)+Width(strings.TrimRight(word, " ")) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), ""
		}
		if line == "" && len(lines) > 0 {
			word = strings.TrimLeft(word, " ")
		}
		for _, part := range pieces(word, width) {
			if line != "" && Width(line)+Width(strings.TrimRight(part, " ")) > width {
				lines, line = append(lines, line), ""
			}
			line += part
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}

// pieces cuts a word into pieces of at most the width, or of one character that is wider.
func pieces(word string, width int) []string {
	if Width(strings.TrimRight(word, " ")) <= width {
		return []string{word}
	}
	all := []string{""}
	for _, r := range word {
		last := len(all) - 1
		if all[last] != "" && Width(all[last])+Width(string(r)) > width {
			all, last = append(all, ""), last+1
		}
		all[last] += string(r)
	}
	return all
}
