package top

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// cell is a value in a table.
type cell struct {
	text  string
	order float64 // sorts the rows; cells with the same order are sorted by their texts
}

// column is a column of a table.
type column struct {
	name string
	most int // maximum width in columns of the terminal; 0: all that the other columns leave
	// a narrow terminal does not show the columns with a positive drop; the highest is the first to go
	drop int
}

// row is a line of a table.
type row struct {
	key    string // identifies the row in the next read
	cells  []cell // one for each column
	detail string // the whole sentence, for the lines below the table
	alarm  bool   // the row needs a human
	open   func() *screen
}

// content is the result of a read of a screen.
type content struct {
	rows []row
	text string // of a screen without columns; lines end with \n
	note string // about the whole content, for example that it is not complete
}

// screen is a table or a text on the whole terminal, with its state: sort order, filter and cursor.
type screen struct {
	title   string
	columns []column // nil: a text
	read    func(context.Context) (content, error)

	content content
	readAt  time.Time // of the content; zero: no read has succeeded yet
	failed  error     // of the last read; nil: it succeeded

	sorted  int // column
	reverse bool
	filter  string
	cursor  int // selected row, or first line of a text
	first   int // first row on the terminal
}

// accept stores the result of a read. After a failed read, the screen keeps its content.
func (s *screen) accept(c content, err error, now time.Time) {
	if s.failed = err; err != nil {
		return
	}
	selected, _ := s.selected()
	s.content, s.readAt = c, now
	for i, r := range s.visible() {
		if r.key == selected.key {
			s.cursor = i
		}
	}
}

// visible returns the rows that match the filter, sorted.
func (s *screen) visible() []row {
	words := strings.Fields(strings.ToLower(s.filter))
	var rows []row
	for _, r := range s.content.rows {
		if r.matches(words) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		x, y := a.cells[s.sorted], b.cells[s.sorted]
		d := cmp.Or(cmp.Compare(x.order, y.order), cmp.Compare(x.text, y.text))
		if s.reverse {
			return -d
		}
		return d
	})
	return rows
}

// matches reports whether each word, in lower case, is in one of the cells or in the detail.
func (r row) matches(words []string) bool {
	all := []string{strings.ToLower(r.detail)}
	for _, c := range r.cells {
		all = append(all, strings.ToLower(c.text))
	}
	text := strings.Join(all, "\n")
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// selected returns the row under the cursor. ok is false if there is none.
func (s *screen) selected() (r row, ok bool) {
	rows := s.visible()
	if len(rows) == 0 {
		return row{}, false
	}
	return rows[min(max(s.cursor, 0), len(rows)-1)], true
}

// move moves the cursor by a number of rows or lines, on a page that shows `height` of them. `length` is the
// number of all rows or lines.
func (s *screen) move(by, height, length int) {
	last := length - 1
	if s.columns == nil { // the cursor is the first line, and the page never shows less than it can
		last = length - height
	}
	s.cursor = max(0, min(s.cursor+by, last))
}

// scroll moves the first row, so that the page shows the cursor, and returns it.
func (s *screen) scroll(height, length int) int {
	s.move(0, height, length)
	s.first = max(0, min(s.first, s.cursor, length-height), s.cursor-height+1)
	return s.first
}
