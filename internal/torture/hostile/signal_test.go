package hostile

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

// awaitWhy sends the Query `why` to a workflow until the result satisfies the condition `want`.
func (h *hostileClient) awaitWhy(id string, want func(contract.Why) bool) contract.Why {
	h.t.Helper()
	var why contract.Why
	var err error
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var v converter.EncodedValue
		if v, err = h.temporal.QueryWorkflow(h.t.Context(), id, "", contract.QueryWhy); err == nil {
			if err = v.Get(&why); err == nil && want(why) {
				return why
			}
		}
	}
	h.t.Errorf(
		"query `why` of workflow %s: got %+v, error %v; want a result that satisfies the condition",
		id, why, err,
	)
	return why
}

// checkHistories checks for every workflow of the namespace that no workflow task failed, and that the
// workflow's history has at most `maxEvents` events. checkHistories allows workflow tasks to time out,
// because that happens on a busy machine. If a workflow task times out again and again, checkHistories finds
// the workflow, because the workflow's history becomes longer than `maxEvents`.
func (h *hostileClient) checkHistories(maxEvents int) {
	h.t.Helper()
	c := h.temporal
	all, err := c.ListWorkflow(h.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range all.Executions {
		events := 0
		each := c.GetWorkflowHistory(h.t.Context(), e.Execution.WorkflowId, e.Execution.RunId, false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for each.HasNext() {
			event, err := each.Next()
			if err != nil {
				h.t.Fatal(err)
			}
			events++
			switch cause := event.GetWorkflowTaskFailedEventAttributes().GetCause(); {
			case cause == enums.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
				cause == enums.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND:
				// These two causes are no errors of berth: the server repeats a workflow task if a signal
				// arrives during the task.
			case event.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_FAILED:
				h.t.Errorf("a workflow task of the workflow %s failed, want none to fail: %v",
					e.Execution.WorkflowId, event)
			}
		}
		if events > maxEvents {
			h.t.Errorf(
				"the history of the workflow %s has %d events, want no more than the limit of the test",
				e.Execution.WorkflowId,
				events,
			)
		}
	}
}

func createPort(t *testing.T, h *hostileClient, body string) string {
	t.Helper()
	return contract.PortID(h.must(
		attack{method: http.MethodPost, path: "/networking/v2.0/ports", body: h.fill(body)},
		"port",
		"id",
	))
}

func waitsForAgents(w contract.Why) bool { return w.State == "DOWN" && len(w.Waiting) > 0 }

func TestLongNames_AcceptedByTemporal(t *testing.T) {
	t.Parallel()
	h := newHostileClientFor(t, "api,relay,temporal")
	long, host := strings.Repeat("𝕏", 255), strings.Repeat("h", 255)
	h.must(attack{
		method: http.MethodPost,
		path:   "/agent/v1/state",
		body:   `{"agent_type":"Open vSwitch agent","host":"` + host + `"}`,
	})
	id := createPort(t, h,
		`{"port":{"network_id":"{network}","name":"`+long+`","binding:host_id":"`+host+`"}}`)

	h.awaitWhy(id, func(w contract.Why) bool { return w.State == "DOWN" })

	for _, r := range []contract.Report{{Entity: strings.Repeat("e", 255), Host: strings.Repeat("h", 255)}, {Entity: strings.Repeat("☃", 85), Host: "\u0000"}} {
		if err := h.temporal.SignalWorkflow(t.Context(), id, "", contract.SignalProvisioningComplete, r); err != nil {
			t.Fatal(err)
		}
	}
	h.awaitWhy(id, func(w contract.Why) bool { return w.IgnoredReports == 2 })
	h.checkHistories(100)
}

// hostileReports returns payloads of signals that are not valid reports of a port's agents.
func hostileReports() []any {
	raw := func(encoding, data string) converter.RawValue {
		return converter.NewRawValue(
			&common.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(data)},
		)
	}
	return []any{
		nil, 7, "DHCP", true, []string{"DHCP"}, map[string]any{}, map[string]any{"entity": 7}, map[string]any{"entity": "DHCP", "host": 7}, [][]int{{1}},
		contract.Report{}, contract.Report{Entity: "DHCP", Host: "elsewhere"}, contract.Report{Entity: "nobody", Host: "cmp-1"}, contract.Report{Entity: strings.Repeat("e", 256), Host: "cmp-1"},
		contract.Report{
			Entity: "DHCP",
			Host:   strings.Repeat("h", 256),
		}, contract.Report{Entity: "\x00", Host: "\x00"}, []byte("x"),
		contract.Report{Entity: "DHCP", Host: "cmp-1", Owner: strings.Repeat("o", 256)}, // owner too long
		contract.Report{Entity: "\x00", Event: "block"},
		contract.Report{Entity: "fw", Host: "\x00", Event: "block"},
		contract.Report{Entity: "fw", Event: "block", Owner: "\x00"},
		contract.Report{Entity: "fw", Event: "block", TimeoutSeconds: 1 << 62},
		contract.Report{Entity: "L2", Host: "cmp-1", Event: "block"},
		contract.Report{Entity: "fw", Event: "unblock"},
		raw("json/plain", "{"), raw("json/plain", "\xff"), raw("", ""), raw("unheard of", "x"),
		raw("json/protobuf", "{}"), raw("binary/protobuf", "x"), raw("binary/encrypted", "x"),
		map[string]any{"entity": "DHCP", "host": "elsewhere", "more": strings.Repeat("x", 1<<20)},
		strings.Repeat("x", 1<<20),
	}
}

// If the setting BERTH_AGENT_SIGNATURES is `required`, berth ignores an unsigned report before it checks the
// report's fields.
func TestHostileSignal_UnsignedReportsAreIgnored(t *testing.T) {
	t.Parallel()
	h := newHostileClientOn(t, storetest.URL(t), "api,relay,temporal", "BERTH_AGENT_SIGNATURES=required")
	id := contract.PortID(h.ids["port"])
	h.awaitWhy(id, waitsForAgents)
	reports := append(hostileReports(),
		contract.Report{Entity: "DHCP", Host: "cmp-1"}, contract.Report{Entity: "L2", Host: "cmp-1"})
	for i, p := range reports {
		if err := h.temporal.SignalWorkflow(t.Context(), id, "", contract.SignalProvisioningComplete, p); err != nil {
			t.Errorf("send the hostile report %d: %v", i, err)
		}
	}

	why := h.awaitWhy(id, func(w contract.Why) bool { return w.IgnoredReports >= int64(len(reports)) })

	if !waitsForAgents(why) {
		t.Errorf(
			"send unsigned reports to a port that waits for its agents: got `why` %+v, want the port still waiting for both agents",
			why,
		)
	}
	h.must(attack{method: http.MethodDelete, path: h.fill("/networking/v2.0/ports/{port}")})
	if err := h.temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Errorf("the workflow after the deletion of its port: got error %v, want it to complete", err)
	}
	h.checkHistories(500)
}

func TestHostileSignal_CountedAndIgnored(t *testing.T) {
	t.Parallel()
	h := newHostileClientFor(t, "api,relay,temporal")
	id := contract.PortID(h.ids["port"])
	h.awaitWhy(id, waitsForAgents)
	c, ctx := h.temporal, t.Context()
	payloads := hostileReports()
	for i, p := range payloads {
		if err := c.SignalWorkflow(ctx, id, "", contract.SignalProvisioningComplete, p); err != nil {
			t.Errorf("send the provisioning signal with hostile payload %d: %v", i, err)
		}
		if err := c.SignalWorkflow(ctx, id, "", contract.SignalChanged, p); err != nil {
			t.Errorf("send the signal `changed` with hostile payload %d: %v", i, err)
		}
		if err := c.SignalWorkflow(ctx, id, "", "unheard of", p); err != nil {
			t.Errorf("send an unknown signal with hostile payload %d: %v", i, err)
		}
		sendUpdate(ctx, t, c, id, contract.UpdateProvisioningComplete, p)
		sendUpdate(ctx, t, c, id, "unheard of", p)
		_, _ = c.QueryWorkflow(ctx, id, "", "unheard of", p)
		_, _ = c.QueryWorkflow(ctx, id, "", contract.QueryWhy, p, p)
	}
	if err := c.SignalWorkflow(ctx, id, "", contract.SignalProvisioningComplete, strings.Repeat("x", 5<<20)); err == nil {
		t.Error("send a signal of 5 MiB: Temporal accepted the signal, want an error")
	}
	why := h.awaitWhy(id, func(w contract.Why) bool { return w.IgnoredReports >= int64(len(payloads)) })
	if !waitsForAgents(why) {
		t.Errorf(
			"send invalid reports to a port that waits for its agents: got `why` %+v, want the port still waiting for both agents",
			why,
		)
	}
	for _, unknown := range []string{"port/00000000-0000-0000-0000-000000000000", "port/x", "lease/x", "journal/-1", strings.Repeat("i", 2000)} {
		if err := c.SignalWorkflow(ctx, unknown, "", contract.SignalProvisioningComplete, contract.Report{Entity: "DHCP", Host: "cmp-1"}); err == nil {
			t.Errorf(
				"send a signal to the workflow %s, which does not exist: Temporal accepted the signal, want an error",
				unknown,
			)
		}
	}
	addManyBlocks(h, id)
	h.checkHistories(2000)
	for _, entity := range []string{"DHCP", "L2"} {
		if err := c.SignalWorkflow(ctx, id, "", contract.SignalProvisioningComplete, contract.Report{Entity: entity, Host: "cmp-1"}); err != nil {
			t.Fatal(err)
		}
	}
	h.awaitWhy(id, func(w contract.Why) bool { return w.State == "ACTIVE" })
}

func sendUpdate(ctx context.Context, t *testing.T, c client.Client, id, name string, p any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	u, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   id,
		UpdateName:   name,
		Args:         []any{p},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		if ctx.Err() != nil {
			t.Errorf(
				"send update %s with the argument %.60v: got no answer within ten minutes, want one",
				name,
				p,
			)
		}
		return
	}
	var v contract.ReportResult
	if err := u.Get(ctx, &v); ctx.Err() != nil {
		t.Errorf(
			"send update %s with the argument %.60v: got no answer within ten minutes, want one: %v",
			name, p, err,
		)
	}
}

func TestWorkflowsStartedManually_ChangeNothing(t *testing.T) {
	t.Parallel()
	h := newHostileClientFor(t, "api,relay,temporal")
	c, ctx := h.temporal, t.Context()
	inputs := []any{
		nil,
		7,
		"x",
		[]int{1},
		contract.Input{},
		contract.Input{Key: "x"},
		contract.Input{Key: "-1"},
		contract.Input{Key: "0"},
		contract.Input{Key: "99999999"},
		contract.Input{Key: "00000000-0000-0000-0000-000000000000"},
		contract.Input{
			Key: strings.Repeat("k", 100000),
		},
		contract.Input{Key: "\x00"},
		map[string]any{"key": 7},
		map[string]any{"other": 1},
	}
	var runs []client.WorkflowRun
	for _, typ := range []string{contract.Port, contract.Lease, contract.JournalEntry, contract.Maintenance} {
		for i, in := range inputs {
			run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
				ID:        fmt.Sprintf("hand/%s/%d", typ, i),
				TaskQueue: contract.TaskQueue(typ),
			}, typ, in)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		run, err := c.ExecuteWorkflow(ctx,
			client.StartWorkflowOptions{ID: "hand/" + typ, TaskQueue: contract.TaskQueue(typ)}, typ)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run, mustRun(c.ExecuteWorkflow(
			ctx,
			client.StartWorkflowOptions{ID: "hand/twice/" + typ, TaskQueue: contract.TaskQueue(typ)},
			typ, 1, 2, 3,
		)))
	}
	for _, run := range runs {
		ended, cancel := context.WithTimeout(ctx, 10*time.Minute)
		err := run.Get(ended, nil)
		if ended.Err() != nil {
			t.Errorf(
				"start workflow %s with invalid input: the workflow did not end within ten minutes, want it to end: %v",
				run.GetID(),
				err,
			)
		}
		cancel()
	}
	// a workflow that repeats its work without a pause has thousands of events; the workflow of an audit had
	// 35 events on a busy machine
	h.checkHistories(100)
}

// addManyBlocks reports more blocks than a port can have, all with long names, and then removes the blocks.
// The names must fit into the search attribute BerthWaitingFor, otherwise each workflow task of the port
// would fail.
func addManyBlocks(h *hostileClient, id string) {
	h.t.Helper()
	entities := make([]string, 40)
	send := func(event string) {
		for i := range entities {
			entities[i] = fmt.Sprintf("%02d %s", i, strings.Repeat("e", 45))
			if err := h.temporal.SignalWorkflow(h.t.Context(), id, "", contract.SignalProvisioningComplete, contract.Report{Entity: entities[i], Event: event}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	send("block")
	h.awaitWhy(id, func(w contract.Why) bool { return len(w.Waiting) == network.MaxBlocks })
	send("unblock")
	h.awaitWhy(id, func(w contract.Why) bool { return len(w.Waiting) == 1 && w.Waiting[0].For == "L2" })
}

func mustRun(run client.WorkflowRun, err error) client.WorkflowRun {
	if err != nil {
		panic(err)
	}
	return run
}
