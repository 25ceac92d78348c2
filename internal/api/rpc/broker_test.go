package rpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/rpc"
	"berth/internal/devstack"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// patience bounds waits for a condition that an idle machine meets at once. A busy machine may need minutes.
const patience = 10 * time.Minute

var (
	broker *devstack.RabbitMQ
	hosts  atomic.Int64 // virtual hosts that tests have
)

func TestMain(m *testing.M) {
	if os.Getenv(serveDatabase) != "" {
		os.Exit(serveForEver())
	}
	os.Exit(withBroker(m))
}

// ownBroker is one that the test may kill.
func ownBroker(t *testing.T) *devstack.RabbitMQ {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-test-") // shorter than the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := devstack.StartRabbitMQ(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Kill)
	return own
}

// runs runs something until the test ends.
func runs(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// withBroker runs the tests beside one broker.
func withBroker(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if broker, err = devstack.StartRabbitMQ(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer broker.Kill()
	return storetest.Main(m)
}

// virtualHost is a part of the broker for this test alone.
func virtualHost(t *testing.T) string {
	t.Helper()
	n := int(hosts.Add(1)) - 1
	if n >= devstack.VirtualHosts {
		t.Fatalf("more than %d tests want a virtual host", devstack.VirtualHosts)
	}
	return broker.URL(n)
}

// serve answers agents until the test ends, and returns once it does.
func serve(t *testing.T, s *store.Store, url string) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	server := rpc.NewServer(rpc.Options{Store: s, Brokers: []string{url}, Host: "here", Metrics: registry})
	runs(t, server.Run)
	eventually(t, "the server is connected", server.Connected)
	return registry
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s", what, patience)
		}
	}
}

// agent is a process with the oslo.messaging of Debian.
type agent struct {
	in      io.WriteCloser
	mu      sync.Mutex
	waiting map[int]chan outcome
	next    int
	heard   chan heard
}

type outcome struct {
	ID      int             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Failure string          `json:"failure"`
	Message string          `json:"message"`
	Heard   string          `json:"heard"`
	Args    json.RawMessage `json:"args"`
}

// heard is a message of the server.
type heard struct {
	Method string
	Args   json.RawMessage
}

// python is the interpreter for which Debian packages oslo.messaging.
const python = "/usr/bin/python3"

func newAgent(t *testing.T, url string) *agent {
	t.Helper()
	cmd := exec.Command(python, filepath.Join("testdata", "agent.py"), strings.Replace(url, "amqp://", "rabbit://", 1))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	a := &agent{in: in, waiting: map[int]chan outcome{}, heard: make(chan heard, 10000)}
	go a.read(out)
	return a
}

func (a *agent) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var o outcome
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			continue
		}
		if o.Heard != "" {
			a.heard <- heard{o.Heard, o.Args}
			continue
		}
		a.mu.Lock()
		waiting := a.waiting[o.ID]
		a.mu.Unlock()
		waiting <- o
	}
}

// ask sends a request and returns its answer.
func (a *agent) ask(t *testing.T, request map[string]any) outcome {
	t.Helper()
	answer := make(chan outcome, 1)
	a.mu.Lock()
	a.next++
	request["id"] = a.next
	a.waiting[a.next] = answer
	line, err := json.Marshal(request)
	if err == nil {
		_, err = fmt.Fprintf(a.in, "%s\n", line)
	}
	a.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case o := <-answer:
		return o
	case <-time.After(patience):
		t.Fatalf("no answer to %s", line)
		return outcome{}
	}
}

// call calls a method and decodes its result.
func (a *agent) call(t *testing.T, into any, method, version string, args map[string]any) {
	t.Helper()
	o := a.ask(t, map[string]any{"topic": "q-plugin", "method": method, "version": version, "args": args})
	if o.Failure != "" {
		t.Fatalf("%s: %s: %s", method, o.Failure, o.Message)
	}
	if into == nil {
		if string(o.Result) != "null" {
			t.Fatalf("%s: got %s, want null", method, o.Result)
		}
		return
	}
	if err := json.Unmarshal(o.Result, into); err != nil {
		t.Fatalf("%s: %s: %v", method, o.Result, err)
	}
}
