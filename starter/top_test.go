package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"berth/starter/cli"
)

// terminal is a pseudo terminal with 80 columns and 24 lines in which `starter top` runs.
type terminal struct {
	t       *testing.T
	keys    *os.File
	program *exec.Cmd
	screen  *vt.SafeEmulator
	mutex   sync.Mutex
	written bytes.Buffer  // all that the program has written
	closed  chan struct{} // closed after the program has closed the terminal
}

// startTop starts `starter top` in a pseudo terminal. The test ends it at the latest.
func startTop(t *testing.T, environ []string, args ...string) *terminal {
	t.Helper()
	term := &terminal{
		t:       t,
		program: exec.CommandContext(t.Context(), "starter", append([]string{"top", "--every=20ms"}, args...)...),
		screen:  vt.NewSafeEmulator(80, 24),
		closed:  make(chan struct{}),
	}
	term.program.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), environ...)
	var err error
	if term.keys, err = pty.StartWithSize(term.program, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(term.closed)
		_, _ = io.Copy(term, term.keys)
	}()
	go func() { _, _ = io.Copy(term.keys, term.screen) }() // the answers of the terminal
	return term
}

// Write shows on the screen what the program has written.
func (t *terminal) Write(p []byte) (int, error) {
	t.mutex.Lock()
	t.written.Write(p)
	t.mutex.Unlock()
	return t.screen.Write(p)
}

// output returns all that the program has written, with its escape sequences.
func (t *terminal) output() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.written.String()
}

func (t *terminal) press(keys string) {
	t.t.Helper()
	if _, err := t.keys.WriteString(keys); err != nil {
		t.t.Fatal(err)
	}
}

// await waits until the screen shows all texts.
func (t *terminal) await(texts ...string) {
	t.t.Helper()
	t.awaitScreen(func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}, strings.Join(texts, "; "))
}

// awaitScreen waits until the text on the screen satisfies the condition. In this text, one blank stands for
// all blanks and line ends between two words.
func (t *terminal) awaitScreen(condition func(screen string) bool, want string) {
	t.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		screen := ansi.Strip(t.screen.Render())
		if condition(strings.Join(strings.Fields(screen), " ")) {
			return
		}
		if time.Now().After(deadline) || t.t.Context().Err() != nil {
			t.t.Fatalf("the terminal shows\n%s\nwant %s", screen, want)
		}
	}
}

// end presses q and checks that the program ends with success and leaves the terminal as it was.
func (t *terminal) end() {
	t.t.Helper()
	t.press("q")
	if err := t.program.Wait(); err != nil {
		t.t.Errorf("after the key q: got %v, want exit code 0", err)
	}
	<-t.closed
	const leaveAlternateScreen = "\x1b[?1049l"
	if !strings.Contains(t.output(), leaveAlternateScreen) {
		t.t.Error("the program does not leave the alternate screen of the terminal")
	}
	_ = t.keys.Close()
}

// newFront returns the URL of a server in front of a stub of the API. While `lost` is true, the server breaks
// each connection.
func newFront(t *testing.T, stub *apiStub, lost *atomic.Bool) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() {
			panic(http.ErrAbortHandler)
		}
		stub.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func TestTop_FilterAndDrillDownShowTheWhyOfThePort(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	term := startTop(t, h.environ)
	term.await("[1 what waits]", "> 9m L2 on cmp-1 2 ports")
	term.press("\r")
	term.await("waiting for L2 on cmp-1: 2", "port web-1", "port unstarted")
	term.press("/web-1\r")
	term.awaitScreen(func(screen string) bool {
		return strings.Contains(screen, "> 9m port web-1") && !strings.Contains(screen, "unstarted")
	}, "only the port web-1")
	term.press("\r")
	// the text of `starter why port/web-1`
	term.await("port/"+h.portID+": waiting for DHCP and L2", "(from its workflow)", "WAITS FOR", "no deadline")
	term.press("\x1b")
	term.await(`1 of 2 match "web-1"`)
	term.end()
}

func TestTop_ALostServerIsShownAndTheDataComesBack(t *testing.T) {
	t.Parallel()
	stub, _ := newAPIStub(t)
	stub.create("ports", cli.Object{"name": "web"})
	stub.create("leases", cli.Object{"name": "gold"})
	var lost atomic.Bool
	term := startTop(t, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + newFront(t, stub, &lost), "TEMPORAL_ADDRESS=127.0.0.1:1"})
	term.press("3")
	term.await("leases: 1", "gold")

	lost.Store(true)
	term.await("Old data, of ", "cannot reach the API at http://127.0.0.1", "gold")

	stub.create("leases", cli.Object{"name": "silver"})
	lost.Store(false)
	term.await("leases: 2", "silver")
	term.awaitScreen(func(screen string) bool { return !strings.Contains(screen, "Old data") }, "no error")
	term.end()
}

func TestTop_ControlCharactersOfANameDoNotReachTheTerminal(t *testing.T) {
	t.Parallel()
	stub, url := newAPIStub(t)
	stub.create("ports", cli.Object{"name": "web"})
	stub.create("leases", cli.Object{"name": "evil\x1b]0;owned\x07\x1b[2J\u009b31m 計算"})
	stub.create("leases", cli.Object{"name": "good"})
	term := startTop(t, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + url, "TEMPORAL_ADDRESS=127.0.0.1:1"})
	term.press("3")
	term.await("evil·]0;owned··[2J·31m 計算", "good")
	term.press("/evil\r\r")
	term.await("is DOWN (from the API; Temporal is unavailable)")
	term.end()
	for _, sequence := range []string{"\x1b]0;owned", "\u009b31m"} {
		if strings.Contains(term.output(), sequence) {
			t.Errorf("the program writes %q of a name to the terminal", sequence)
		}
	}
}

func TestTop_SaysWhatATokenMayNotRead(t *testing.T) {
	t.Parallel()
	_, url := newAPIStub(t)
	term := startTop(t, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + url, "BERTH_TOKEN=stranger:p"})
	term.await("Policy doesn't allow it (403)", "The token has no permission")
	term.end()
}

func TestTop_FollowsTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	stub, url := newAPIStub(t)
	stub.create("ports", cli.Object{"name": "web"})
	term := startTop(t, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + url})
	term.await("> 9m L2 on cmp-1", "enter open")
	term.screen.Resize(30, 4)
	if err := pty.Setsize(term.keys, &pty.Winsize{Rows: 4, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	term.awaitScreen(func(screen string) bool {
		return strings.Contains(screen, "> 9m") && !strings.Contains(screen, "[1 what waits]")
	}, "the selected row, without the names of the views")
	term.end()
}
