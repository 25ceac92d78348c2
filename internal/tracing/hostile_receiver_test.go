package tracing_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"berth/internal/tracing"
)

// sendTrace sends one trace to a receiver of traces and returns what the process logs meanwhile.
func sendTrace(t *testing.T, receiver http.HandlerFunc) string {
	t.Helper()
	var log bytes.Buffer
	defer logTo(&log)()
	server := httptest.NewServer(receiver)
	defer server.Close()
	sendSpan(t, server, time.Hour) // the exporter does not write to the log after Close
	return log.String()
}

// logTo makes a writer the log of the process, until the returned function is called. A test that calls logTo
// does not run in parallel, because the log belongs to the process.
func logTo(w io.Writer) (restore func()) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(w, nil)))
	return func() { slog.SetDefault(before) }
}

// sendSpan sends the span of a request to a receiver of traces, and closes the traces.
func sendSpan(t *testing.T, receiver *httptest.Server, closeTimeout time.Duration) {
	t.Helper()
	traces, err := tracing.Open(tracing.Options{
		Endpoint:     receiver.URL + "/v1/traces",
		Headers:      map[string]string{"X-Api-Key": "hunter2"},
		Sampler:      "always_on",
		CloseTimeout: closeTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, span := traces.StartRequest(r)
	span.End()
	traces.Close()
}

func TestReceiver_RedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var stolen atomic.Int32
		thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
		var asked atomic.Int32
		log := sendTrace(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			http.Redirect(w, r, thief.URL+"/v1/traces", status)
		})
		thief.Close()
		if asked.Load() != 1 || stolen.Load() != 0 {
			t.Errorf("redirect with status %d: the receiver got %d requests and the other host %d, want 1 and 0",
				status, asked.Load(), stolen.Load())
		}
		if !strings.Contains(log, "redirect") {
			t.Errorf("redirect with status %d: the log does not name it: %s", status, log)
		}
	}
}

func TestReceiver_LogOfItsErrorsIsShort(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"long": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, strings.Repeat("x\n", 1<<20))
		},
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusBadRequest)
			zip := gzip.NewWriter(w)
			_, _ = zip.Write(make([]byte, 64<<20))
			_ = zip.Close()
		},
		"long reason": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, strings.Repeat("x\n", 10<<10))
		},
	} {
		log := sendTrace(t, answer)
		if len(log) == 0 || len(log) > 2000 || strings.Count(log, "\n") != 1 {
			t.Errorf("%s answer: got a log of %d bytes in %d lines, want one short line: %.300s",
				name, len(log), strings.Count(log, "\n"), log)
		}
	}
}

// Clients without a token choose the method and the path of a request.
func TestStartRequest_SpanHasNoLongTexts(t *testing.T) {
	var received int
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received += len(body)
	}))
	defer receiver.Close()
	traces, err := tracing.Open(tracing.Options{
		Endpoint:     receiver.URL + "/v1/traces",
		Sampler:      "always_on",
		CloseTimeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	method := strings.Repeat("A", 60<<10)
	r, err := http.NewRequestWithContext(t.Context(), method, "/"+strings.Repeat("x", 60<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	const parent = "4bf92f3577b34da6a3ce929d0e0e4736"
	r.Header.Set("Traceparent", "00-"+parent+"-00f067aa0ba902b7-01")
	state := make([]string, 32) // the longest that the standard allows
	for i := range state {
		state[i] = fmt.Sprintf("k%d=%s", i, strings.Repeat("v", 256))
	}
	r.Header.Set("Tracestate", strings.Join(state, ","))
	r, span := traces.StartRequest(r)
	if sent := tracing.InjectMap(r.Context()); !strings.Contains(sent["traceparent"], parent) || sent["tracestate"] != "" {
		t.Errorf("headers of a request to another service: got %v, want the traceparent of the client alone", sent)
	}
	tracing.EndRequest(span, method, "/networking", http.StatusNotFound, "req-1")
	traces.Close()
	if received == 0 || received > 4<<10 {
		t.Errorf("a span of a request with a long method, path and tracestate: got %d bytes, want at most 4 kB", received)
	}
}

// Texts of an attribute whose own limit is missing.
func TestSpan_LimitsTheTextsOfAttributes(t *testing.T) {
	var received int
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received += len(body)
	}))
	defer receiver.Close()
	traces, err := tracing.Open(tracing.Options{
		Endpoint:     receiver.URL + "/v1/traces",
		Sampler:      "always_on",
		CloseTimeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, span := traces.Tracer().Start(t.Context(), "rpc m")
	span.SetAttributes(attribute.String("rpc.method", strings.Repeat("m", 1<<20)))
	span.End()
	traces.Close()
	if received == 0 || received > 4<<10 {
		t.Errorf("a span with an attribute of 1 MiB: got %d bytes, want at most 4 kB", received)
	}
}

// logLines receives the lines of a log.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestClose_GivesUpOnAReceiverThatDoesNotAnswer(t *testing.T) {
	lines := make(logLines, 100)
	defer logTo(lines)()
	hang := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer receiver.Close()
	defer close(hang)
	sendSpan(t, receiver, time.Millisecond)
	if line := <-lines; !strings.Contains(line, "the last spans were not sent") {
		t.Errorf("got the log %q, want that the last spans were not sent", line)
	}
}
