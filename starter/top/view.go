package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"berth/starter/cli"
)

// The size of a terminal that has not told its size.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Styles of the terminal: Select Graphic Rendition.
const (
	reversed = "7"
	bold     = "1"
	red      = "31"
)

const keys = "enter open  esc back  / filter  s sort  ? help  q quit"

var help = []string{
	"1 2 3 4, tab     another view: what waits, hosts, leases, journal",
	"up down, j k     another row; page up and page down, home and end",
	"enter            what waits for the party; the ports of the host; what",
	"                 `starter why` says of the port, lease or journal entry",
	"esc              clear the filter, or go back",
	"/                filter the rows: they contain all words of the filter;",
	"                 enter keeps the filter, esc clears it",
	"s, S             sort by the next column; reverse the order",
	"r                read again now",
	"ctrl+z           suspend",
	"q                quit",
	"",
	"`starter top` changes nothing; `starter --help` lists all commands.",
	"",
	"Any key closes this help.",
}

// View draws the present screen on the whole terminal.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	return v
}

func (m *model) size() (width, height int) {
	if m.width <= 0 || m.height <= 0 {
		return defaultWidth, defaultHeight
	}
	return m.width, m.height
}

// lines draws as many lines as the terminal has; none is wider than the terminal.
func (m *model) lines() []string {
	width, height := m.size()
	s := m.present()
	rows := s.visible()
	var columns []int // nil: a text
	if s.columns != nil && !m.help && !s.readAt.IsZero() {
		columns = widths(s.columns, rows, width)
	}
	head, foot := m.head(s, len(rows), columns), m.foot(s)
	body := m.body(s, rows, columns)
	for len(body) < height-len(head)-len(foot) {
		body = append(body, "")
	}
	all := append(append(head, body...), foot...)
	return all[:min(len(all), height)]
}

// pageHeight returns the number of rows that the terminal shows.
func (m *model) pageHeight() int {
	_, height := m.size()
	s := m.present()
	return max(1, height-len(m.head(s, 0, make([]int, len(s.columns))))-len(m.foot(s)))
}

// length returns the number of rows or lines of a screen.
func (m *model) length(s *screen) int {
	if s.columns != nil {
		return len(s.visible())
	}
	return len(m.text(s))
}

// head draws the lines above the rows. A terminal with few lines has fewer of them.
func (m *model) head(s *screen, shown int, columns []int) []string {
	width, height := m.size()
	var head []string
	if height >= 8 {
		var tabs []string
		for i, v := range m.views {
			name := fmt.Sprintf(" %d %s ", i+1, v.title)
			if i == m.view {
				name = fmt.Sprintf("[%d %s]", i+1, v.title)
			}
			tabs = append(tabs, name)
		}
		head = append(head, m.styled(bold, fit(strings.Join(tabs, " "), width)))
	}
	if height >= 5 {
		head = append(head, fit(m.subtitle(s, shown), width))
	}
	if len(columns) > 0 && height >= 6 {
		names := make([]string, len(s.columns))
		for i, c := range s.columns {
			names[i] = c.name
		}
		head = append(head, m.styled(bold, fit(line(unmarked, names, columns), width)))
	}
	return head
}

// subtitle describes what the screen shows: its title, the filter and the order.
func (m *model) subtitle(s *screen, shown int) string {
	if s.columns == nil || s.readAt.IsZero() {
		return clean(s.title)
	}
	text := fmt.Sprintf("%s: %d", clean(s.title), shown)
	if s.filter != "" || m.typing {
		text = fmt.Sprintf("%s: %d of %d match %q", clean(s.title), shown, len(s.content.rows), s.filter)
	}
	order := "sorted by " + s.columns[s.sorted].name
	if s.reverse {
		order += ", reversed"
	}
	return strings.TrimSuffix(text+" ("+order+"). "+clean(s.content.note), " ")
}

// body draws the rows, or the text of a screen without rows.
func (m *model) body(s *screen, rows []row, columns []int) []string {
	width, _ := m.size()
	page := m.pageHeight()
	if columns == nil {
		text := m.text(s)
		first := 0
		if s.columns == nil && !m.help {
			first = s.scroll(page, len(text))
		}
		return text[first:min(len(text), first+page)]
	}
	if len(rows) == 0 {
		return cli.Wrap(nothing(s), width)
	}
	var lines []string
	first := s.scroll(page, len(rows))
	for i, r := range rows[first:min(len(rows), first+page)] {
		mark, style := unmarked, ""
		if r.alarm {
			style = red
		}
		if first+i == s.cursor {
			mark, style = marker, reversed
		}
		texts := make([]string, len(r.cells))
		for j, c := range r.cells {
			texts[j] = c.text
		}
		lines = append(lines, m.styled(style, fit(line(mark, texts, columns), width)))
	}
	return lines
}

// nothing says why a table has no rows.
func nothing(s *screen) string {
	if s.filter != "" {
		return "No row matches the filter."
	}
	return strings.TrimSuffix("Nothing. "+clean(s.content.note), " ")
}

// text returns the lines of a screen that has no table now.
func (m *model) text(s *screen) []string {
	width, _ := m.size()
	text := s.content.text
	switch {
	case m.help:
		text = strings.Join(help, "\n")
	case s.readAt.IsZero() && s.failed != nil:
		text = problem(s.failed)
	case s.readAt.IsZero():
		text = "Reading…"
	}
	var lines []string
	for l := range strings.Lines(text) {
		lines = append(lines, cli.Wrap(clean(strings.TrimSuffix(l, "\n")), width)...)
	}
	return lines
}

// foot draws the lines below the rows: the sentence of the selected row or why the last read failed, and the
// keys with the time of the data.
func (m *model) foot(s *screen) []string {
	width, height := m.size()
	var foot []string
	if height >= 12 || s.failed != nil && height >= 3 {
		count := 1
		if height >= 12 {
			count = 1 + height/12
		}
		wrapped, sentence := cli.Wrap(m.sentence(s), width), make([]string, count)
		if copied := copy(sentence, wrapped); copied < len(wrapped) {
			sentence[count-1] += " …"
		}
		style := ""
		if s.failed != nil {
			style = red
		}
		for _, l := range sentence {
			foot = append(foot, m.styled(style, fit(l, width)))
		}
	}
	if height >= 3 {
		foot = append(foot, m.status(s, width))
	}
	return foot
}

func (m *model) sentence(s *screen) string {
	switch r, _ := s.selected(); {
	case m.help || s.readAt.IsZero():
		return ""
	case s.failed != nil:
		return fmt.Sprintf(
			"Old data, of %s (%s ago): %s",
			s.readAt.Local().Format("15:04:05"),
			age(m.now().Sub(s.readAt)),
			clean(problem(s.failed)),
		)
	default:
		return clean(r.detail)
	}
}

// status draws the last line: the keys or the filter, and the time of the data at the right.
func (m *model) status(s *screen, width int) string {
	left := keys
	if m.typing {
		left = "Filter: " + s.filter + "_"
	}
	right := ""
	if !s.readAt.IsZero() {
		right = "  data of " + s.readAt.Local().Format("15:04:05")
	}
	return fit(left, max(width-len(right), 0)) + fit(right, min(width, len(right)))
}

// problem describes a failed read in words.
func problem(err error) string {
	what, next := cli.Describe(err)
	return strings.TrimSuffix(what+". "+next, " ")
}

// styled draws a text in a style, unless the terminal has no colours.
func (m *model) styled(style, text string) string {
	if !m.color || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
