package main

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
	"berth/starter/cli"
)

func TestMain(m *testing.M) { testscript.Main(withServers{m}, map[string]func(){"starter": main}) }

// withServers runs the tests of the package with a real Temporal server and a real PostgreSQL server.
type withServers struct{ m *testing.M }

func (w withServers) Run() int { return temporaltest.Main(w.m, storetest.Main) }

func TestCommandTree_EveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	tree := commandTree()
	for _, c := range tree.Commands {
		t.Run(c.Words, func(t *testing.T) {
			t.Parallel()
			path, _ := cli.SplitWords(c.Words)
			if c.Help == "" {
				t.Error("got a command without help text, want a help text for every command")
			}
			if c.Bind == nil {
				t.Error("got a command without an action, want an action for every command")
			}
			if len(path) > 1 && tree.Groups[path[0]] == "" {
				t.Errorf("the command group %s has no help text, want one", path[0])
			}
		})
	}
}

// TestCommandLine runs the scripts testdata/*.txtar. Each script of TestCommandLine has its own stub of the
// API, whose URL is $BERTH_URL.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	var stubs sync.Map // work folder → *apiStub
	stubOf := func(ts *testscript.TestScript) *apiStub {
		s, _ := stubs.Load(ts.Getenv("WORK"))
		return s.(*apiStub)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			s, url := newAPIStub(e.T().(testing.TB))
			stubs.Store(e.WorkDir, s)
			e.Setenv("BERTH_URL", url)
			e.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			// api COLLECTION NAME KEY=VALUE changes an object of the stub, without a request.
			"api": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(stubOf(ts).change(args[0], args[1], args[2]))
			},
			// polled [list] [port] waits until the command in the background has read the list of ports, a
			// single port, or both two more times. After the second read, the command has printed the state
			// that it got from the first read.
			"polled": func(ts *testscript.TestScript, _ bool, args []string) { polled(ts, stubOf(ts), args) },
			// requested TEXT checks that the API got a request that contains TEXT; `! requested TEXT` checks
			// that it got no such request.
			"requested": func(ts *testscript.TestScript, neg bool, args []string) {
				if s := stubOf(ts); s.requested(args[0]) == neg {
					ts.Fatalf(
						"requested: the requests do not match the expectation of the script; the stub got these requests: %s",
						strings.Join(s.requests, "\n"),
					)
				}
			},
		},
	})
}

func polled(ts *testscript.TestScript, s *apiStub, what []string) {
	wantLists, wantPorts := 0, 0
	for _, w := range what {
		switch w {
		case "list":
			wantLists = 2
		case "port":
			wantPorts = 2
		default:
			ts.Fatalf("polled: got the argument %q, want list or port", w)
		}
	}
	lists, ports := s.reads()
	for started := time.Now(); time.Since(started) < 10*time.Minute; time.Sleep(5 * time.Millisecond) {
		if l, p := s.reads(); l >= lists+wantLists && p >= ports+wantPorts {
			return
		}
	}
	ts.Fatalf("polled: want two more reads of %v by the command, got fewer within ten minutes", what)
}

// exits CODE COMMAND… runs a command and checks the exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("exits: want an exit code, but the command did not run: %v", err)
	}
	if got != want {
		ts.Fatalf("exits: the command returned exit code %d, want %d\n%s%s",
			got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}
