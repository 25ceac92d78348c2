package server_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"berth/internal/contract"
	"berth/internal/identity"
	"berth/internal/odl/odltest"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// spanReceiver is a receiver of traces with OTLP over HTTP.
type spanReceiver struct {
	mu    sync.Mutex
	spans []*otlp.Span
}

func (s *spanReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collector.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.spans = append(s.spans, scope.Spans...)
		}
	}
}

// of returns the spans of a trace, each once.
func (s *spanReceiver) of(trace string) (spans []*otlp.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, span := range s.spans {
		if hex.EncodeToString(span.TraceId) == trace && !seen[string(span.SpanId)] {
			seen[string(span.SpanId)] = true
			spans = append(spans, span)
		}
	}
	return spans
}

// startTraced starts an App that sends all traces to the receiver, with a stub of the controller.
func startTraced(
	t *testing.T,
	receiver string,
	settings ...string,
) (*server.App, *odltest.Controller, *sync.Map) {
	t.Helper()
	controller, traceparents := odltest.New(), &sync.Map{}
	controller.ServeHTTP(
		httptest.NewRecorder(),
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, odltest.BasePath+"/networks",
			strings.NewReader(`{"network":{"id":"`+servertest.Canary+`"}}`)),
	)
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		traceparents.Store(r.Method+" "+r.URL.Path, r.Header.Get("Traceparent"))
		controller.ServeHTTP(w, r)
	}))
	t.Cleanup(stub.Close)
	a := servertest.StartApp(
		t,
		"api,relay,temporal",
		append([]string{"BERTH_ODL_URL=" + stub.URL + odltest.BasePath,
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver}, settings...)...)
	servertest.AwaitReady(t, a)
	return a, controller, traceparents
}

// create sends a POST and returns the ID of the created object and the header of the answer.
func create(t *testing.T, a *server.App, kind, body string, header http.Header) (string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, a.URL()+"/networking/v2.0/"+kind+"s",
		strings.NewReader(`{"`+kind+`":`+body+`}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	r.Header.Set("X-Auth-Token", "admin")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var object map[string]struct{ ID string }
	if err := json.NewDecoder(answer.Body).Decode(&object); err != nil ||
		answer.StatusCode != http.StatusCreated {
		t.Fatalf("create a %s: got %s, %v", kind, answer.Status, err)
	}
	return object[kind].ID, answer.Header
}

// hasObject reports whether the controller has an object.
func hasObject(c *odltest.Controller, id string) func() bool {
	return func() bool {
		return slices.ContainsFunc(c.Records(),
			func(r odltest.Record) bool { return r.ID == id && r.Object != nil })
	}
}

func TestTraces_OneTraceFromRequestOverNoteAndWorkflowToController(t *testing.T) {
	t.Parallel()
	receiver := &spanReceiver{}
	collectorServer := httptest.NewServer(receiver)
	t.Cleanup(collectorServer.Close)
	a, controller, traceparents := startTraced(t, collectorServer.URL)
	network, _ := create(
		t, a, "network", `{}`,
		http.Header{"Traceparent": {"00-" + strings.Repeat("e", 32) + "-" + strings.Repeat("b", 16) + "-00"}},
	)
	servertest.Await(t, "the controller has the network", hasObject(controller, network))

	const trace, client = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const global = "req-11111111-1111-4111-8111-111111111111"
	port, answer := create(t, a, "port", `{"network_id":"`+network+`"}`, http.Header{
		"Traceparent":            {"00-" + trace + "-" + client + "-01"},
		"X-Openstack-Request-Id": {global},
	})
	servertest.Await(t, "the controller has the port", hasObject(controller, port))

	chains := []string{
		"POST /networking/v2.0/ports",
		"SQL batch < POST /networking/v2.0/ports",
		"note Port < POST /networking/v2.0/ports",
		"StartWorkflow:Port < note Port",
		"RunWorkflow:Port < StartWorkflow:Port",
		"note JournalEntry < POST /networking/v2.0/ports",
		"RunWorkflow:JournalEntry < StartWorkflow:JournalEntry < note JournalEntry",
		"POST opendaylight < RunActivity:",
		"SQL batch < RunActivity:",
		"RunActivity: < RunWorkflow:JournalEntry < StartWorkflow:JournalEntry < note JournalEntry < POST /networking/v2.0/ports",
	}
	servertest.Await(t, "the receiver has the spans of the request",
		func() bool { return len(missingChains(receiver.of(trace), chains, client)) == 0 })
	checkMemo(t, a, contract.PortID(port), map[string]string{
		contract.MemoRequestID:       answer.Get("X-Openstack-Request-Id"),
		contract.MemoGlobalRequestID: global,
	})
	sent, _ := traceparents.Load("POST " + odltest.BasePath + "/ports")
	if !strings.Contains(fmt.Sprint(sent), trace) {
		t.Errorf("traceparent of the request to the controller: got %v, want trace %s", sent, trace)
	}
	if sent, _ := traceparents.Load("POST " + odltest.BasePath + "/networks"); sent != "" {
		t.Errorf("traceparent of a request of a trace that is not sampled: got %v, want none", sent)
	}
	if spans := receiver.of(strings.Repeat("e", 32)); len(spans) != 0 {
		t.Errorf("spans of a trace that is not sampled: got %d, want 0", len(spans))
	}
	for _, span := range receiver.of(trace) {
		if text := span.String(); strings.Contains(text, network) && strings.HasPrefix(span.Name, "SQL") {
			t.Errorf(
				"span %s contains an argument of the statement, want only the text of the statement: %s",
				span.Name,
				text,
			)
		}
	}
}

// checkMemo compares the memo of a workflow with the IDs of the request that started it.
func checkMemo(t *testing.T, a *server.App, workflow string, want map[string]string) {
	t.Helper()
	d, err := a.Temporal.DescribeWorkflowExecution(t.Context(), workflow, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, value := range d.WorkflowExecutionInfo.Memo.Fields {
		var text string
		if err := converter.GetDefaultDataConverter().FromPayload(value, &text); err != nil {
			t.Fatal(err)
		}
		got[name] = text
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("memo of workflow %s (-want +got):\n%s", workflow, d)
	}
}

// missingChains returns the chains "span < parent < …" that no span of the trace has. A final colon in a
// chain stands for any name after the colon. The first chain must be below the span of the client.
func missingChains(spans []*otlp.Span, chains []string, client string) (missing []string) {
	byID := map[string]*otlp.Span{}
	for _, span := range spans {
		byID[hex.EncodeToString(span.SpanId)] = span
	}
	has := func(names []string) bool {
		return slices.ContainsFunc(spans, func(span *otlp.Span) bool {
			for i, name := range names {
				if span == nil ||
					span.Name != name &&
						(!strings.HasSuffix(name, ":") || !strings.HasPrefix(span.Name, name)) {
					return false
				}
				parent := hex.EncodeToString(span.ParentSpanId)
				if i == 0 && len(names) == 1 && parent != client {
					return false
				}
				span = byID[parent]
			}
			return true
		})
	}
	for _, chain := range chains {
		if !has(strings.Split(chain, " < ")) {
			missing = append(missing, chain)
		}
	}
	return missing
}

func TestTraces_EveryAPIContinuesTheTraceAndTheRequestIDOfItsCaller(t *testing.T) {
	t.Parallel()
	receiver := &spanReceiver{}
	collectorServer := httptest.NewServer(receiver)
	t.Cleanup(collectorServer.Close)
	a, _, _ := startTraced(t, collectorServer.URL)
	requests := map[string]string{
		"/placement":   "GET /placement/resource_providers",
		"/networking":  "GET /networking/v2.0/networks",
		"/reservation": "GET /reservation/v1/leases",
		"/agent/v1":    "POST /agent/v1/state",
		"/journal/v1":  "GET /journal/v1/entries",
		"/operator/v1": "GET /operator/v1/overdue",
		"/console":     "GET /console/login",
	}
	for i, api := range a.APIs(identity.Noauth{}) {
		t.Run(api.Prefix, func(t *testing.T) {
			method, path, found := strings.Cut(requests[api.Prefix], " ")
			if !found {
				t.Fatalf("this test has no request for the API %s, want one", api.Prefix)
			}
			trace, parent := fmt.Sprintf("%032x", 0xabc000+i), strings.Repeat("b", 16)
			global := fmt.Sprintf("req-11111111-1111-4111-8111-%012d", i)
			r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{
				"X-Auth-Token":           {"admin"},
				"Traceparent":            {"00-" + trace + "-" + parent + "-01"},
				"X-Openstack-Request-Id": {global},
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()

			servertest.Await(t, "the receiver has the span of the request",
				func() bool { return len(receiver.of(trace)) > 0 })

			got := map[string]string{}
			for _, span := range receiver.of(trace) {
				if hex.EncodeToString(span.ParentSpanId) == parent {
					for _, attribute := range span.Attributes {
						got[attribute.Key] = attribute.Value.GetStringValue()
					}
				}
			}
			id := answer.Header.Get("X-Openstack-Request-Id")
			if id == "" || id == global || got["openstack.request_id"] != id ||
				got["openstack.global_request_id"] != global {
				t.Errorf(
					"%s %s with the request ID %s: got the ID %q in the answer and %v in the span; want an own ID, and both IDs in the span",
					method, path, global, id, got,
				)
			}
		})
	}
}

func TestTraces_MissingReceiverDelaysNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	a, controller, _ := startTraced(t, hanging.URL)
	for range 3 {
		network, _ := create(t, a, "network", `{}`, http.Header{})
		servertest.Await(t, "the controller has the network although the receiver of traces hangs",
			hasObject(controller, network))
	}
}
