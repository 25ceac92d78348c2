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

// maxWait is how long a test waits for a condition. It is generous, so that a slow machine does not fail a test.
const maxWait = 10 * time.Minute

var (
	broker           *devstack.RabbitMQ
	usedVirtualHosts atomic.Int64 // how many virtual hosts tests use
)

func TestMain(m *testing.M) {
	if os.Getenv(envServerDatabase) != "" {
		os.Exit(runServerProcess())
	}
	os.Exit(runWithBroker(m))
}

// startOwnBroker starts a RabbitMQ that the test may kill.
func startOwnBroker(t *testing.T) *devstack.RabbitMQ {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-test-") // t.TempDir is too long for a socket path
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

// runUntilEnd runs a function until the test ends.
func runUntilEnd(t *testing.T, run func(context.Context)) {
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

// runWithBroker runs the tests with one shared RabbitMQ.
func runWithBroker(m *testing.M) int {
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

// newVirtualHost returns the URL of a virtual host that no other test uses.
func newVirtualHost(t *testing.T) string {
	t.Helper()
	n := int(usedVirtualHosts.Add(1)) - 1
	if n >= devstack.VirtualHosts {
		t.Fatalf("more than %d tests need a virtual host", devstack.VirtualHosts)
	}
	return broker.URL(n)
}

// startServer starts an RPC server until the test ends and waits until it is connected.
func startServer(t *testing.T, s *store.Store, url string) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	server := rpc.NewServer(rpc.Options{Store: s, Brokers: []string{url}, Host: "here", Metrics: registry})
	runUntilEnd(t, server.Run)
	eventually(t, "the server is connected", server.Connected)
	return registry
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, maxWait)
		}
	}
}

// agent is a process that uses Debian's oslo.messaging.
type agent struct {
	in       io.WriteCloser
	mu       sync.Mutex
	pending  map[int]chan callResult
	next     int
	received chan receivedMessage
}

type callResult struct {
	ID       int             `json:"id"`
	Result   json.RawMessage `json:"result"`
	Failure  string          `json:"failure"`
	Message  string          `json:"message"`
	Received string          `json:"received"`
	Args     json.RawMessage `json:"args"`
}

// receivedMessage is a call or cast that the agent received.
type receivedMessage struct {
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
	a := &agent{in: in, pending: map[int]chan callResult{}, received: make(chan receivedMessage, 10000)}
	go a.read(out)
	return a
}

func (a *agent) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var o callResult
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			continue
		}
		if o.Received != "" {
			a.received <- receivedMessage{o.Received, o.Args}
			continue
		}
		a.mu.Lock()
		waiting := a.pending[o.ID]
		a.mu.Unlock()
		waiting <- o
	}
}

// request sends a request to the process and returns its answer.
func (a *agent) request(t *testing.T, request map[string]any) callResult {
	t.Helper()
	answer := make(chan callResult, 1)
	a.mu.Lock()
	a.next++
	request["id"] = a.next
	a.pending[a.next] = answer
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
	case <-time.After(maxWait):
		t.Fatalf("no answer to %s", line)
		return callResult{}
	}
}

// call calls an RPC method and decodes its result. A nil into means that the result must be null.
func (a *agent) call(t *testing.T, into any, method, version string, args map[string]any) {
	t.Helper()
	o := a.request(t, map[string]any{"topic": "q-plugin", "method": method, "version": version, "args": args})
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
