package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

func TestSweep_RestartsTerminatedWorkflow(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,relay,temporal")
	servertest.AwaitReady(t, a)
	base := "http://" + a.Address() + "/networking/v2.0/"
	var network struct{ Network struct{ ID string } }
	post(t, base+"networks", map[string]any{"network": map[string]any{"name": "blue"}}, &network)
	var port struct{ Port struct{ ID string } }
	post(t, base+"ports", map[string]any{"port": map[string]any{"network_id": network.Network.ID}}, &port)
	id := contract.PortID(port.Port.ID)
	servertest.Await(t, "the port has a workflow", func() bool { return running(t, a.Temporal, id) })

	if err := a.Temporal.TerminateWorkflow(t.Context(), id, "", "by mistake"); err != nil {
		t.Fatal(err)
	}

	sweep := a.Temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	servertest.Await(t, "the sweep restarts the workflow", func() bool {
		if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
			t.Error(err)
		}
		return running(t, a.Temporal, id)
	})
}

func TestSweep_DeletesOldGenerationHistory(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,temporal", "BERTH_HISTORY_AGE=1h", "BERTH_HISTORY_ROWS=3")
	servertest.AwaitReady(t, a)
	storetest.Exec(t, a.DatabaseURL(), `
		insert into generation_change (at, actor, cause, provider, provider_to)
		select now() - case when n = 4 then interval '2 hours' else interval '0' end, 'a', 'created', 'p', n
		from generate_series(1, 6) n`)

	sweep := a.Temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	servertest.Await(t, "old changes and those above the maximum number are deleted", func() bool {
		if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
			t.Error(err)
		}
		left, err := a.Store().Inventory.ProviderHistory(t.Context(), "p", 0, 10)
		return err == nil && len(left) == 2 && *left[0].Provider.To == 6 && *left[1].Provider.To == 5
	})
}

// post sends JSON as an administrator and decodes the response into `answer`.
func post(t *testing.T, url string, body, answer any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("POST %s: got %s %s, error %v; want a success", url, resp.Status, text, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("decode the response to POST %s as JSON: got error %v for the body %s, want no error", url, err, text)
	}
}

// running reports whether the workflow with the given ID is running.
func running(t *testing.T, c client.Client, id string) bool {
	t.Helper()
	d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}
