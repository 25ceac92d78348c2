package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { testscript.Main(neighbours{m}, map[string]func(){"starter": main}) }

// neighbours runs the tests beside a real Temporal server and a real PostgreSQL.
type neighbours struct{ m *testing.M }

func (n neighbours) Run() int { return temporaltest.Main(n.m, storetest.Main) }

// TestCommandLine runs testdata/*.txtar. Each script has an API of its own at $BERTH_URL.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	var stubs sync.Map // work folder → stub
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			s, url := newStub(e.T().(testing.TB))
			stubs.Store(e.WorkDir, s)
			e.Setenv("BERTH_URL", url)
			e.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			// api COLLECTION NAME KEY=VALUE changes an object behind the API's back.
			"api": func(ts *testscript.TestScript, _ bool, args []string) {
				s, _ := stubs.Load(ts.Getenv("WORK"))
				ts.Check(change(s.(*stub), args))
			},
			// later DURATION COLLECTION NAME KEY=VALUE does it while the script goes on.
			"later": func(ts *testscript.TestScript, _ bool, args []string) {
				s, _ := stubs.Load(ts.Getenv("WORK"))
				after, err := time.ParseDuration(args[0])
				ts.Check(err)
				time.AfterFunc(after, func() { _ = change(s.(*stub), args[1:]) })
			},
			// polled waits until both the list and one port were read twice more, so that a watcher of either has
			// seen what is so now, and has told it.
			"polled": func(ts *testscript.TestScript, _ bool, _ []string) {
				s, _ := stubs.Load(ts.Getenv("WORK"))
				lists, ones := s.(*stub).reads()
				for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
					if l, o := s.(*stub).reads(); l >= lists+2 && o >= ones+2 {
						return
					}
				}
				ts.Fatalf("nobody watches")
			},
			// requested TEXT looks for a request that the API got.
			"requested": func(ts *testscript.TestScript, neg bool, args []string) {
				s, _ := stubs.Load(ts.Getenv("WORK"))
				if s.(*stub).requested(args[0]) == neg {
					ts.Fatalf("requests: %s", strings.Join(s.(*stub).requests, "\n"))
				}
			},
		},
	})
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
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d instead of %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func change(s *stub, args []string) error {
	key, value, _ := strings.Cut(args[2], "=")
	switch {
	case key == "deleted":
		return s.drop(args[0], args[1])
	case key == "new":
		s.mu.Lock()
		defer s.mu.Unlock()
		var o object
		if err := decode([]byte(value), &o); err != nil {
			return err
		}
		s.add(args[0], o)
		return nil
	}
	var v any
	if decode([]byte(value), &v) != nil {
		v = value
	}
	return s.set(args[0], args[1], key, v)
}

func (s *stub) drop(collection, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.collections[collection] {
		if o["name"] == name {
			delete(s.collections[collection], id)
			return nil
		}
	}
	return os.ErrNotExist
}

// reads counts how often the list of ports and single ports were read.
func (s *stub) reads() (lists, ones int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		switch {
		case strings.HasPrefix(r, "GET /networking/v2.0/ports "):
			lists++
		case strings.HasPrefix(r, "GET /networking/v2.0/ports/"):
			ones++
		}
	}
	return lists, ones
}

func (s *stub) requested(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.Contains(r, text) {
			return true
		}
	}
	return false
}
