package agent_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"berth/agent"
	"berth/agentreport"
)

const port = "0b0f7f0e-1d9f-4a35-9f0e-8f8a6f3a1b02"

// An agent reports over HTTP that it has connected a port. The client sends the report again until berth has
// acknowledged it.
func Example() {
	attempts := 0
	berth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if attempts++; attempts == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(
			w,
			`{"verdicts": [{"port": "`+port+`", "result": "waiting", "status": "DOWN", "remaining": ["DHCP"]}]}`,
		)
	}))
	defer berth.Close()

	c := &agent.Client{Transport: &agent.HTTP{URL: berth.URL, Token: "berth_agent_…"}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := c.Report(ctx, port, agent.Report{Entity: "L2", Host: "cmp-1", Revision: 7})
	switch {
	case errors.Is(err, agent.ErrStale), errors.Is(err, agent.ErrUnknown):
		fmt.Println("forget the port:", err)
	case err != nil:
		fmt.Println("tell an operator:", err)
	default:
		fmt.Println(result.Outcome, result.Status, result.Remaining)
	}
	// Output: waiting DOWN [DHCP]
}

// docs/agents.md shows the example.
func TestDocumentation_ShowsTheExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("agent_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(source), "defer berth.Close()\n\n")
	example, _, _ = strings.Cut(example, "\t// Output:")
	want := "```go\n" + strings.ReplaceAll("\n"+example, "\n\t", "\n")[1:] + "```"
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/agents.md does not contain the example of package agent:\n%s", want)
	}
}

// gateway answers requests in order with the given answers; the last answer repeats.
func gateway(t *testing.T, answers ...func(w http.ResponseWriter)) (*agent.HTTP, *[]string) {
	t.Helper()
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.URL.Path+" "+r.Header.Get("X-Auth-Token")+" "+string(body))
		answers[min(len(bodies), len(answers))-1](w)
	}))
	t.Cleanup(server.Close)
	return &agent.HTTP{URL: server.URL + "/", Token: "secret"}, &bodies
}

func status(code int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func verdict(text string) func(http.ResponseWriter) {
	return status(http.StatusOK, `{"verdicts": [`+text+`]}`)
}

func TestHTTP_TranslatesEachAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   agent.Result
		err    error
	}{
		"done":       {verdict(`{"result": "done", "status": "ACTIVE", "remaining": []}`), agent.Result{Outcome: agent.Done, Status: "ACTIVE", Remaining: []string{}}, nil},
		"duplicate":  {verdict(`{"result": "ignored", "status": "ACTIVE", "remaining": []}`), agent.Result{Outcome: agent.Ignored, Status: "ACTIVE", Remaining: []string{}}, nil},
		"stale":      {verdict(`{"result": "ignored", "stale": true}`), agent.Result{}, agent.ErrStale},
		"gone":       {verdict(`{"result": "gone"}`), agent.Result{}, agent.ErrUnknown},
		"no token":   {status(401, `{"error": {"message": "who?"}}`), agent.Result{}, agent.ErrRefused},
		"other host": {status(403, ``), agent.Result{}, agent.ErrRefused},
		"malformed":  {status(400, ``), agent.Result{}, agent.ErrRefused},
		"busy":       {status(429, ``), agent.Result{}, agent.ErrUnavailable},
		"outage":     {status(503, ``), agent.Result{}, agent.ErrUnavailable},
		"a proxy":    {status(200, `<html>`), agent.Result{}, agent.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, bodies := gateway(t, c.answer)
			got, err := h.Send(t.Context(), port, agent.Report{
				Entity:    "L2",
				Host:      "cmp-1",
				Signature: "x",
				ExpiresAt: 1,
			})
			if d := cmp.Diff(c.want, got); d != "" || !errors.Is(err, c.err) {
				t.Errorf("send a report: error %v, want %v; result (-want +got):\n%s", err, c.err, d)
			}
			want := []string{
				`/agent/v1/reports secret {"reports":[{"port":"` + port + `","entity":"L2","host":"cmp-1"}]}`,
			}
			if d := cmp.Diff(want, *bodies); d != "" {
				t.Errorf("requests (-want +got):\n%s", d)
			}
		})
	}
}

func TestHTTP_RedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("request to another host: it has the token %q", r.Header.Get("X-Auth-Token"))
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	for name, client := range map[string]*http.Client{"default": nil, "own": {}} {
		h := &agent.HTTP{URL: server.URL, Token: "secret", Client: client}
		if _, err := h.Send(t.Context(), port, agent.Report{}); !errors.Is(err, agent.ErrRefused) {
			t.Errorf("send with the %s client to a server that redirects: got error %v, want ErrRefused", name, err)
		}
	}
}

func TestClient_RepeatsUntilAcknowledged(t *testing.T) {
	t.Parallel()
	h, bodies := gateway(t, status(503, ``), status(429, ``), status(200, `<html>`),
		verdict(`{"result": "done"}`))
	c := &agent.Client{Transport: h, MinPause: 1, MaxPause: time.Millisecond}
	got, err := c.Report(t.Context(), port, agent.Report{Entity: "L2", Host: "cmp-1"})
	if err != nil || got.Outcome != agent.Done || len(*bodies) != 4 {
		t.Errorf("report: %+v, error %v, after %d requests; want done after 4", got, err, len(*bodies))
	}
}

func TestClient_SendsRefusedReportOnce(t *testing.T) {
	t.Parallel()
	h, bodies := gateway(t, status(403, `{"error": {"message": "the token belongs to cmp-2"}}`))
	_, err := (&agent.Client{Transport: h}).Report(t.Context(), port,
		agent.Report{Entity: "L2", Host: "cmp-1"})
	if !errors.Is(err, agent.ErrRefused) || !strings.Contains(err.Error(), "cmp-2") || len(*bodies) != 1 {
		t.Errorf("report: error %v after %d requests, want ErrRefused with the message after 1",
			err, len(*bodies))
	}
}

func TestClient_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	h, _ := gateway(t, func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := (&agent.Client{Transport: h, MinPause: 1}).Report(ctx, port,
		agent.Report{Entity: "L2", Host: "cmp-1"})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, agent.ErrUnavailable) {
		t.Errorf(
			"report until the context ends: error %v, want the error of the context and ErrUnavailable",
			err,
		)
	}
}

// fakeTemporal answers signals and updates with an error or a result, and records the reports.
type fakeTemporal struct {
	err     error
	answer  string // JSON of the result
	reports []agent.Report
}

func (f *fakeTemporal) SignalWorkflow(_ context.Context, workflowID, _, name string, arg any) error {
	f.reports = append(f.reports, arg.(agent.Report))
	if workflowID != agentreport.WorkflowID(port) || name != agentreport.Message {
		return fmt.Errorf("signal %s to %s", name, workflowID)
	}
	return f.err
}

func (f *fakeTemporal) UpdateWorkflow(
	ctx context.Context,
	o client.UpdateWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	return updateHandle{answer: f.answer}, f.SignalWorkflow(ctx, o.WorkflowID, "", o.UpdateName, o.Args[0])
}

type updateHandle struct {
	client.WorkflowUpdateHandle
	answer string
}

func (h updateHandle) Get(_ context.Context, v any) error { return json.Unmarshal([]byte(h.answer), v) }

func TestTemporal_TranslatesEachAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		temporal fakeTemporal
		want     agent.Outcome
		err      error
	}{
		"done":        {fakeTemporal{answer: `{"status": "ACTIVE"}`}, agent.Done, nil},
		"waiting":     {fakeTemporal{answer: `{"status": "DOWN", "remaining": ["DHCP"]}`}, agent.Waiting, nil},
		"stale":       {fakeTemporal{answer: `{"status": "DOWN", "stale": true}`}, "", agent.ErrStale},
		"deleted":     {fakeTemporal{answer: `{"status": "DELETED"}`}, "", agent.ErrUnknown},
		"refused":     {fakeTemporal{err: temporal.NewNonRetryableApplicationError("not signed", "ReportRefused", nil)}, "", agent.ErrRefused},
		"invalid":     {fakeTemporal{err: temporal.NewNonRetryableApplicationError("no entity", "InvalidReport", nil)}, "", agent.ErrRefused},
		"database":    {fakeTemporal{err: temporal.NewApplicationError("report again", "Unavailable")}, "", agent.ErrUnavailable},
		"no workflow": {fakeTemporal{err: serviceerror.NewNotFound("workflow not found")}, "", agent.ErrUnavailable},
		"not allowed": {fakeTemporal{err: serviceerror.NewPermissionDenied("denied", "")}, "", agent.ErrRefused},
		"outage":      {fakeTemporal{err: serviceerror.NewUnavailable("down")}, "", agent.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := (&agent.Update{Temporal: &c.temporal}).Send(t.Context(), port,
				agent.Report{Entity: "L2", Host: "cmp-1"})
			if got.Outcome != c.want || !errors.Is(err, c.err) {
				t.Errorf("send an update: got %+v, error %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestTemporal_SignsEachReport(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeTemporal{answer: `{}`}
	report := agent.Report{Entity: "L2", Host: "cmp-1"}
	got, err := (&agent.Signal{Temporal: f, Signer: agent.Signer{Key: private}}).Send(t.Context(),
		port, report)
	if err != nil || got.Outcome != agent.Sent {
		t.Errorf("send a signal: got %+v, error %v; want sent", got, err)
	}
	if _, err := (&agent.Update{Temporal: f, Signer: agent.Signer{Key: private}}).Send(t.Context(), port, report); err != nil {
		t.Errorf("send an update: %v", err)
	}
	for _, r := range f.reports {
		if refusal := agentreport.Verify([]ed25519.PublicKey{public}, port, r, time.Now()); refusal != "" {
			t.Errorf("verify the report %+v: got %q, want that berth accepts it", r, refusal)
		}
	}
}

// Only the row says whether a port without a workflow exists, so the gateway decides.
func TestClient_AsksTheGatewayAboutPortWithoutWorkflow(t *testing.T) {
	t.Parallel()
	h, bodies := gateway(t, verdict(`{"result": "gone"}`))
	f := &fakeTemporal{err: serviceerror.NewNotFound("workflow execution already completed")}
	c := &agent.Client{
		Transport:    &agent.Update{Temporal: f},
		Fallback:     h,
		MinPause:     1,
		MaxPause:     time.Millisecond,
		UnknownAfter: time.Millisecond,
	}
	_, err := c.Report(t.Context(), port, agent.Report{Entity: "L2", Host: "cmp-1"})
	if !errors.Is(err, agent.ErrUnknown) || len(*bodies) != 1 {
		t.Errorf("report with a gateway: error %v after %d requests, want ErrUnknown after 1",
			err, len(*bodies))
	}
	c.Fallback = nil
	_, err = c.Report(t.Context(), port, agent.Report{Entity: "L2", Host: "cmp-1"})
	if !errors.Is(err, agent.ErrUnknown) || len(f.reports) < 3 {
		t.Errorf("report without a gateway: error %v after %d attempts, want ErrUnknown after several",
			err, len(f.reports))
	}
}
