package top

import (
	"slices"
	"strings"

	"berth/starter/cli"
)

// gap is between two columns, and marker before the selected row.
const (
	gap      = "  "
	marker   = "> "
	unmarked = "  "
)

// leastRest is the minimum width of the column that gets the rest of the line.
const leastRest = 30

// widths distributes the width of the terminal over the columns. The width of a hidden column is 0.
func widths(columns []column, rows []row, width int) []int {
	out := make([]int, len(columns))
	for i, c := range columns {
		out[i] = cli.Width(c.name)
		for _, r := range rows {
			out[i] = max(out[i], cli.Width(r.cells[i].text))
		}
		if c.most > 0 {
			out[i] = min(out[i], c.most)
		}
	}
	// the rest of the line goes to one column
	rest := slices.IndexFunc(columns, func(c column) bool { return c.most == 0 })
	for {
		left := width - len(unmarked)
		for i, w := range out {
			if i != rest && w > 0 {
				left -= w + len(gap)
			}
		}
		first := dropped(columns, out)
		if left >= min(leastRest, out[rest]) || first < 0 {
			out[rest] = max(min(out[rest], left), 0)
			return out
		}
		out[first] = 0
	}
}

// dropped returns the column that goes first if the terminal is too narrow, or -1.
func dropped(columns []column, widths []int) int {
	first := -1
	for i, c := range columns {
		if widths[i] > 0 && c.drop > 0 && (first < 0 || c.drop > columns[first].drop) {
			first = i
		}
	}
	return first
}

// line joins the cells of one row, with the widths of the columns.
func line(mark string, cells []string, widths []int) string {
	var shown []string
	for i, c := range cells {
		if widths[i] > 0 {
			shown = append(shown, fit(c, widths[i]))
		}
	}
	return mark + strings.Join(shown, gap)
}
