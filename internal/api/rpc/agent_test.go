package rpc_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// agent is a Python process that uses Debian's oslo.messaging.
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

// receivedMessage is an RPC call or cast that the agent received.
type receivedMessage struct {
	Method string
	Args   json.RawMessage
}

// python is the path of the Python interpreter for which Debian packages oslo.messaging.
const python = "/usr/bin/python3"

func newAgent(t *testing.T, url string) *agent {
	t.Helper()
	cmd := exec.Command(python, filepath.Join("testdata", "agent.py"),
		strings.Replace(url, "amqp://", "rabbit://", 1))
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

// request sends a request to the agent process and returns the answer.
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
		t.Fatalf("wait for the agent process to answer the request %s: got no answer, want one", line)
		return callResult{}
	}
}

// call calls an RPC method of berth and decodes the method's result into `into`. If `into` is nil, the method
// must return null.
func (a *agent) call(t *testing.T, into any, method, version string, args map[string]any) {
	t.Helper()
	o := a.request(t, map[string]any{
		"topic":   "q-plugin",
		"method":  method,
		"version": version,
		"args":    args,
	})
	if o.Failure != "" {
		t.Fatalf("call %s: got the exception %s: %s, want a result", method, o.Failure, o.Message)
	}
	if into == nil {
		if string(o.Result) != "null" {
			t.Fatalf("call the RPC method %s: got the result %s, want null", method, o.Result)
		}
		return
	}
	if err := json.Unmarshal(o.Result, into); err != nil {
		t.Fatalf("call the RPC method %s: want a result that can be decoded, got %s: %v",
			method, o.Result, err)
	}
}

// listenTo makes the agent receive the messages that are sent to a topic.
func (a *agent) listenTo(t *testing.T, topic, host, version string) {
	t.Helper()
	if o := a.request(t, map[string]any{"topic": topic, "host": host, "version": version}); o.Failure != "" {
		t.Fatal(o.Failure, o.Message)
	}
}

// receiveMethod waits for the next message to the agent and returns the arguments of the message.
// receiveMethod fails the test if the message has another method than `method`.
func (a *agent) receiveMethod(t *testing.T, method string) map[string]any {
	t.Helper()
	return a.receiveMethods(t, method)[method]
}

// receive waits for the next message to the agent and returns the message.
func (a *agent) receive(t *testing.T) receivedMessage {
	t.Helper()
	select {
	case h := <-a.received:
		return h
	case <-time.After(maxWait):
		t.Fatal("wait for the next message to the agent: got none within maxWait, want one")
		return receivedMessage{}
	}
}

// receiveMethods waits for one message of each method in `methods`. receiveMethods returns a map from the
// method to the arguments of its message. The messages for receiveMethods may arrive in any order.
func (a *agent) receiveMethods(t *testing.T, methods ...string) map[string]map[string]any {
	t.Helper()
	got := map[string]map[string]any{}
	for range methods {
		h := a.receive(t)
		if !slices.Contains(methods, h.Method) || got[h.Method] != nil {
			t.Fatalf(
				"receive messages in any order: got method %s with arguments %s, want exactly one message of each method in %v",
				h.Method, h.Args, methods,
			)
		}
		var args map[string]any
		if err := json.Unmarshal(h.Args, &args); err != nil {
			t.Fatal(err)
		}
		got[h.Method] = args
	}
	return got
}

// receiveAbout waits until the agent has received a message with the method `method` about each ID in `ids`.
// receiveAbout ignores all other messages.
func (a *agent) receiveAbout(t *testing.T, method string, ids ...uuid.UUID) {
	t.Helper()
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id.String()] = true
	}
	deadline := time.After(maxWait)
	for len(missing) > 0 {
		select {
		case h := <-a.received:
			for id := range missing {
				if h.Method == method && strings.Contains(string(h.Args), id) {
					delete(missing, id)
				}
			}
		case <-deadline:
			t.Fatalf("wait for messages %s about all IDs: want one about each ID, got none about %v",
				method, missing)
		}
	}
}
