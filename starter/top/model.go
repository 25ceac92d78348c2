package top

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// model is the state of the program. Update changes it, View draws it, and only the commands that Update
// returns do I/O.
type model struct {
	ctx   context.Context
	now   func() time.Time
	every time.Duration // from the end of a read to the begin of the next
	color bool
	views []*screen // the screens of the keys 1, 2, …

	view          int       // index of the present view
	opened        []*screen // the screens that Enter has opened, above the view
	width, height int
	help          bool
	typing        bool // the keys change the filter
	// number of the present screen's reads: the result of a read with another number is of an earlier screen
	serial int
	stop   context.CancelFunc // ends the present screen's reads
}

// Messages of the program to itself.
type (
	// readMessage is the result of a read.
	readMessage struct {
		serial  int
		content content
		err     error
		at      time.Time
	}
	// dueMessage says that the next read is due.
	dueMessage struct{ serial int }
	// secondMessage says that the ages on the terminal are a second older.
	secondMessage struct{}
)

// Init begins to read the first view.
func (m *model) Init() tea.Cmd { return tea.Batch(m.show(), nextSecond()) }

func nextSecond() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return secondMessage{} })
}

// Update changes the model after a key or another message.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tea.PasteMsg:
		if m.typing {
			m.setFilter(m.present().filter + clean(message.Content))
		}
	case tea.KeyPressMsg:
		if m.typing {
			return m, m.typeFilter(message)
		}
		return m, m.press(message.String())
	case readMessage:
		if message.serial == m.serial {
			m.present().accept(message.content, message.err, message.at)
			return m, m.next()
		}
	case dueMessage:
		if message.serial == m.serial {
			return m, m.read()
		}
	case secondMessage:
		return m, nextSecond()
	}
	return m, nil
}

// present returns the screen on the terminal.
func (m *model) present() *screen {
	if n := len(m.opened); n > 0 {
		return m.opened[n-1]
	}
	return m.views[m.view]
}

// show begins to read the present screen, and ends the reads of the screen before it.
func (m *model) show() tea.Cmd {
	m.serial++
	if m.stop != nil {
		m.stop()
	}
	return m.read()
}

func (m *model) read() tea.Cmd {
	ctx, stop := context.WithCancel(m.ctx)
	m.stop = stop
	serial, now, read := m.serial, m.now, m.present().read
	return func() tea.Msg {
		defer stop()
		c, err := read(ctx)
		return readMessage{serial, c, err, now()}
	}
}

func (m *model) next() tea.Cmd {
	serial := m.serial
	return tea.Tick(m.every, func(time.Time) tea.Msg { return dueMessage{serial} })
}

// press handles a key outside of the filter.
func (m *model) press(key string) tea.Cmd {
	if m.help && key != "ctrl+c" && key != "q" {
		m.help = false
		return nil
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "?":
		m.help = true
	case "r":
		return m.show()
	case "enter", "right", "l":
		return m.open()
	case "esc", "left", "h", "backspace":
		return m.back()
	case "tab":
		return m.switchTo((m.view + 1) % len(m.views))
	case "shift+tab":
		return m.switchTo((m.view + len(m.views) - 1) % len(m.views))
	case "1", "2", "3", "4":
		return m.switchTo(int(key[0] - '1'))
	default:
		m.arrange(key)
	}
	return nil
}

// arrange handles the keys that only move the cursor, sort or filter.
func (m *model) arrange(key string) {
	s := m.present()
	length, page := m.length(s), m.pageHeight()
	switch key {
	case "up", "k":
		s.move(-1, page, length)
	case "down", "j":
		s.move(1, page, length)
	case "pgup", "ctrl+b":
		s.move(-page, page, length)
	case "pgdown", "ctrl+f", "space":
		s.move(page, page, length)
	case "home", "g":
		s.move(-length, page, length)
	case "end", "G":
		s.move(length, page, length)
	}
	if s.columns == nil {
		return
	}
	switch key {
	case "s":
		s.sorted, s.reverse = (s.sorted+1)%len(s.columns), false
	case "S":
		s.reverse = !s.reverse
	case "/":
		m.typing = true
	}
}

// typeFilter handles a key while the user types the filter.
func (m *model) typeFilter(k tea.KeyPressMsg) tea.Cmd {
	filter := m.present().filter
	switch k.String() {
	case "ctrl+c":
		return tea.Quit
	case "enter":
		m.typing = false
	case "esc":
		m.typing = false
		m.setFilter("")
	case "backspace":
		runes := []rune(filter)
		m.setFilter(string(runes[:max(0, len(runes)-1)]))
	case "ctrl+u":
		m.setFilter("")
	default:
		m.setFilter(filter + clean(k.Text))
	}
	return nil
}

// setFilter changes the filter of the present screen and selects its first row.
func (m *model) setFilter(filter string) {
	s := m.present()
	s.filter, s.cursor = strings.TrimLeft(filter, " "), 0
}

// open opens the screen of the selected row.
func (m *model) open() tea.Cmd {
	r, ok := m.present().selected()
	if !ok || r.open == nil {
		return nil
	}
	m.opened = append(m.opened, r.open())
	return m.show()
}

// back clears the filter, or else goes back to the screen before.
func (m *model) back() tea.Cmd {
	if s := m.present(); s.filter != "" {
		m.setFilter("")
		return nil
	}
	if len(m.opened) == 0 {
		return nil
	}
	m.opened = m.opened[:len(m.opened)-1]
	return m.show()
}

// switchTo shows another view.
func (m *model) switchTo(view int) tea.Cmd {
	if view >= len(m.views) || view == m.view && len(m.opened) == 0 {
		return nil
	}
	m.view, m.opened = view, nil
	return m.show()
}
