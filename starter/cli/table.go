package cli

import (
	"io"
	"slices"
	"strings"
)

// WriteTable writes the rows of a table in aligned columns, with two blanks between the columns, and without
// the control characters in the cells.
func WriteTable(w io.Writer, head []string, rows [][]string) error {
	widths := make([]int, len(head))
	lines := slices.Concat([][]string{upperCase(head)}, rows)
	for n, line := range lines {
		lines[n] = make([]string, len(line))
		for i, c := range line {
			lines[n][i] = Sanitize(c)
			widths[i] = max(widths[i], Width(lines[n][i]))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		for i, c := range line {
			b.WriteString(c)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-Width(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func upperCase(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToUpper(w)
	}
	return out
}
