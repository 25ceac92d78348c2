package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"berth/starter/cli"
)

var noon = time.Date(2030, 1, 31, 12, 0, 0, 0, time.Local)

// server is what the screens of a test read.
type server struct {
	names []string
	note  string
	err   error
	reads int
}

func (s *server) read(context.Context) (content, error) {
	s.reads++
	if s.err != nil {
		return content{}, s.err
	}
	c := content{note: s.note}
	for i, name := range s.names {
		c.rows = append(c.rows, row{
			key:    name,
			cells:  []cell{{text: fmt.Sprint(10 - i), order: float64(10 - i)}, text(name)},
			detail: clean("detail of " + name),
			open: func() *screen {
				return &screen{title: "why " + name, read: func(context.Context) (content, error) {
					return content{text: "port/" + name + ": DOWN\nL2 on cmp-1\n"}, s.err
				}}
			},
		})
	}
	return c, nil
}

// startModel returns a model that has read its first view. Its terminal is 80 columns wide and 24 lines high.
func startModel(t *testing.T, s *server) *model {
	t.Helper()
	m := &model{ctx: t.Context(), now: func() time.Time { return noon }, every: time.Hour, color: true}
	for _, title := range []string{"what waits", "hosts"} {
		m.views = append(m.views, &screen{title: title, read: s.read, columns: []column{{name: "AGE", most: 5}, {name: "NAME"}}})
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	answer(m, m.show())
	return m
}

// answer executes the command of a read and gives its result to the model.
func answer(m *model, read tea.Cmd) {
	if read != nil {
		m.Update(read())
	}
}

// press presses keys. After each key, the model gets the result of the read that the key has begun.
func press(m *model, keys ...string) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEsc, "down": tea.KeyDown, "tab": tea.KeyTab, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	for _, k := range keys {
		press := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		if code, ok := special[k]; ok {
			press = tea.KeyPressMsg{Code: code}
		}
		_, cmd := m.Update(press)
		answer(m, cmd)
	}
}

// shown returns the lines on the terminal without their styles.
func shown(m *model) []string {
	lines := m.lines()
	for i, l := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	return lines
}

// expectShown checks that the terminal shows the texts.
func expectShown(t *testing.T, m *model, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if all := strings.Join(shown(m), "\n"); !strings.Contains(all, text) {
			t.Errorf("the terminal shows\n%s\nwant %q", all, text)
		}
	}
}

func TestModel_EnterOpensTheExplanationAndEscGoesBack(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: []string{"web", "db"}})
	press(m, "down")
	expectShown(t, m, "> 10   web", "  9    db", "detail of web")
	press(m, "enter")
	expectShown(t, m, "why web", "port/web: DOWN\nL2 on cmp-1")
	press(m, "esc")
	expectShown(t, m, "> 10   web")
}

func TestModel_TheFilterSelectsRowsAndEscClearsIt(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: []string{"web", "Webmail", "db"}})
	press(m, "/", "w", "E", "b", "x", "backspace", "enter")
	expectShown(t, m, `2 of 3 match "wEb"`, "web", "Webmail")
	if all := strings.Join(shown(m), "\n"); strings.Contains(all, "  db") {
		t.Errorf("the terminal shows\n%s\nwant no row that the filter excludes", all)
	}
	press(m, "enter")
	expectShown(t, m, "port/Webmail: DOWN")
	press(m, "esc", "esc")
	expectShown(t, m, "what waits: 3 ")
}

func TestModel_SortsByEachColumnAndReverses(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: []string{"b", "c", "a"}})
	for _, want := range []struct{ key, order string }{{"", "acb"}, {"S", "bca"}, {"s", "abc"}, {"S", "cba"}, {"s", "acb"}} {
		if want.key != "" {
			press(m, want.key)
		}
		got := ""
		for _, r := range m.present().visible() {
			got += r.key
		}
		if got != want.order {
			t.Errorf("after the key %q: got the order %s, want %s", want.key, got, want.order)
		}
	}
}

func TestModel_TheCursorStaysOnItsRowWhenOthersCome(t *testing.T) {
	t.Parallel()
	s := &server{names: []string{"web", "db"}}
	m := startModel(t, s)
	press(m, "s", "down") // by name: db, web
	s.names = []string{"web", "db", "cache", "aa"}
	press(m, "r")
	if r, _ := m.present().selected(); r.key != "web" {
		t.Errorf("after other rows came: got the cursor on %s, want web", r.key)
	}
	s.names = nil
	press(m, "r", "down", "enter")
	expectShown(t, m, "Nothing.")
	s.note = "The token may not read the rest."
	press(m, "r")
	expectShown(t, m, "Nothing. The token may not read the rest.")
}

func TestModel_ALostServerIsShownWithTheAgeOfTheData(t *testing.T) {
	t.Parallel()
	s := &server{names: []string{"web"}}
	m := startModel(t, s)
	s.err = cli.Unavailable("the API at http://x", "Is it running?", errors.New("connection refused"))
	press(m, "r")
	m.now = func() time.Time { return noon.Add(90 * time.Second) }
	expectShown(t, m, "web", "Old data, of 12:00:00 (1m ago): cannot reach the API at http://x: connection", "refused. Is it running?")

	s.err = nil
	s.names = []string{"back"}
	press(m, "r")
	expectShown(t, m, "back", "data of 12:01:30")
	if all := strings.Join(shown(m), "\n"); strings.Contains(all, "Old data") {
		t.Errorf("after the server came back, the terminal shows\n%s", all)
	}
}

func TestModel_ReadsAgainAfterEachRead(t *testing.T) {
	t.Parallel()
	s := &server{err: errors.New("lost")}
	m := startModel(t, s)
	m.every = 0
	for range 3 {
		_, cmd := m.Update(readMessage{serial: m.serial, err: s.err, at: noon})
		due, ok := cmd().(dueMessage)
		if !ok {
			t.Fatalf("after a read: got %v, want that the next read becomes due", due)
		}
		_, read := m.Update(due)
		answer(m, read)
	}
	if s.reads != 4 {
		t.Errorf("got %d reads, want 4", s.reads)
	}
}

func TestModel_IgnoresTheReadOfAnEarlierScreen(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: []string{"web"}})
	late := readMessage{serial: m.serial, content: content{text: "late"}, at: noon}
	press(m, "enter")
	_, cmd := m.Update(late)
	_, read := m.Update(dueMessage{late.serial})
	if cmd != nil || read != nil {
		t.Error("the result of an earlier screen's read begins another read, want none")
	}
	expectShown(t, m, "port/web: DOWN")
}

func TestModel_AnErrorWithoutDataIsShownInWords(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{err: cli.Errorf(cli.ExitDenied, "Use another token.", "The API\x1b[2J refused the request")})
	expectShown(t, m, "The API·[2J refused the request. Use another token.")
}

func TestModel_HelpListsTheKeysAndAnyKeyClosesIt(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: []string{"web"}})
	press(m, "?")
	expectShown(t, m, "enter            what waits for the party", "Any key closes this help.")
	press(m, "x")
	expectShown(t, m, "> 10   web")
	if _, cmd := m.Update(tea.KeyPressMsg{Text: "q", Code: 'q'}); cmd == nil || cmd() != tea.Quit() {
		t.Error("the key q does not quit")
	}
}

func TestModel_TabShowsTheNextView(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: []string{"web"}})
	press(m, "enter", "tab")
	expectShown(t, m, "[2 hosts]", "hosts: 1")
	press(m, "1", "4")
	expectShown(t, m, "[1 what waits]")
}

// hostileNames have control characters, escape sequences, and characters that are wide, narrow or invisible.
var hostileNames = []string{
	"\x1b]0;title\x07\x1b[31mred\u009b2J",
	"計算ノード計算ノード",
	"👨\u200d👩\u200d👧 family",
	"e\u0301\u202egnp\u2066\ufeff☁\ufe0f",
	"line\nbreak\ttab\r\x00\x7f\u2028",
	strings.Repeat("very long ", 40),
}

func TestView_NeverExceedsTheTerminal(t *testing.T) {
	t.Parallel()
	s := &server{names: hostileNames}
	m := startModel(t, s)
	check := func(state string) {
		for width := 1; width < 130; width += 7 {
			for height := 1; height < 40; height++ {
				m.Update(tea.WindowSizeMsg{Width: width, Height: height})
				lines := m.lines()
				if len(lines) > height {
					t.Fatalf("%s, %d×%d: got %d lines", state, width, height, len(lines))
				}
				for _, l := range lines {
					if got := ansi.StringWidthWc(l); got > width {
						t.Fatalf("%s, %d×%d: got %d columns in the line %q", state, width, height, got, l)
					}
				}
				if state == "table" && width > 1 && height > 1 && !strings.Contains(strings.Join(lines, ""), ">") {
					t.Fatalf("%d×%d: the selected row is not shown:\n%s", width, height, strings.Join(lines, "\n"))
				}
			}
		}
	}
	check("table")
	press(m, "end")
	check("table")
	press(m, "?")
	check("help")
	press(m, "x", "enter")
	check("text")
	s.err = errors.New(strings.Repeat("lost ", 30))
	press(m, "esc", "r")
	check("lost server")
}

func TestView_NoControlCharacterOfANameReachesTheTerminal(t *testing.T) {
	t.Parallel()
	m := startModel(t, &server{names: hostileNames})
	m.color = false
	screens := [][]string{m.lines()}
	for range hostileNames {
		press(m, "enter")
		screens = append(screens, m.lines())
		press(m, "esc", "down")
	}
	for _, lines := range screens {
		for _, l := range lines {
			if strings.ContainsFunc(l, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }) {
				t.Errorf("got the line %q, want no character that controls the terminal", l)
			}
		}
	}
}

func TestView_WideCharactersKeepTheColumns(t *testing.T) {
	t.Parallel()
	columns := []column{{name: "NAME", most: 8}, {name: "WHY"}}
	var rows []row
	for _, name := range append(hostileNames, "a", "計算") {
		rows = append(rows, row{cells: []cell{text(name), {text: "why"}}})
	}
	w := widths(columns, rows, 80)
	for _, r := range rows {
		l := line(unmarked, []string{r.cells[0].text, r.cells[1].text}, w)
		if before, _, _ := strings.Cut(l, "why"); ansi.StringWidthWc(before) != 12 {
			t.Errorf("the second column begins at %d in %q, want 12", ansi.StringWidthWc(before), l)
		}
	}
}

func TestView_ANarrowTerminalHidesTheLeastImportantColumns(t *testing.T) {
	t.Parallel()
	columns := []column{{name: "AGE", most: 5}, {name: "HOST", most: 10, drop: 1}, {name: "AGENT", most: 10, drop: 2}, {name: "WHY"}}
	rows := []row{{cells: []cell{{text: "5m"}, {text: "compute-17"}, {text: "openvswitch"}, {text: strings.Repeat("w", 90)}}}}
	for width, want := range map[int][]int{
		120: {3, 10, 10, 89},
		80:  {3, 10, 10, 49},
		60:  {3, 10, 0, 41},
		30:  {3, 0, 0, 23},
		4:   {3, 0, 0, 0},
	} {
		if d := cmp.Diff(want, widths(columns, rows, width)); d != "" {
			t.Errorf("widths of the columns on a terminal with %d columns (-want +got):\n%s", width, d)
		}
	}
}

func TestView_HasNoEscapeSequenceWithoutColours(t *testing.T) {
	t.Parallel()
	s := &server{names: []string{"web"}}
	m := startModel(t, s)
	if !strings.Contains(m.View().Content, "\x1b[7m") {
		t.Error("the selected row is not shown in reverse on a terminal with colours")
	}
	m.color, s.err = false, errors.New("lost")
	press(m, "r")
	if strings.Contains(m.View().Content, "\x1b") {
		t.Errorf("got %q, want no escape sequence", m.View().Content)
	}
}
