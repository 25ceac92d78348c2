package kills

import (
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/contract"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestSearchAttributes_HostFollowsThePort binds, moves and unbinds a port. Temporal's list of workflows must
// show the port under its current host only.
func TestSearchAttributes_HostFollowsThePort(t *testing.T) {
	t.Parallel()
	s, c := servertest.SharedDeployment(t)
	api := s.StartWorker("api,relay,temporal")
	api.RegisterAgents()
	api.Must("POST", "/agent/v1/state",
		servertest.Object{"agent_type": "Open vSwitch agent", "host": "cmp-2"})
	network := api.CreateNetwork("blue")
	body := servertest.PortBody(network)
	delete(body, "binding:host_id")
	port := api.Create("port", body)
	awaitHosts := func(what, cmp1, cmp2 string) {
		t.Helper()
		s.Await(what, func() string {
			found := map[string]string{}
			for _, host := range []string{"cmp-1", "cmp-2"} {
				list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
					Query: fmt.Sprintf(`BerthResource = 'port' AND BerthHost = '%s'`, host),
				})
				if err != nil {
					return err.Error()
				}
				for _, e := range list.GetExecutions() {
					found[host] += e.GetExecution().GetWorkflowId()
				}
			}
			if found["cmp-1"] == cmp1 && found["cmp-2"] == cmp2 {
				return ""
			}
			return fmt.Sprint(found)
		})
	}
	bind := func(host string) {
		t.Helper()
		api.Must("PUT", "/networking/v2.0/ports/"+port,
			servertest.Object{"port": servertest.Object{"binding:host_id": host}})
	}
	id := contract.PortID(port)

	bind("cmp-1")
	awaitHosts("a port that is bound after its creation has its host", id, "")
	bind("cmp-2")
	awaitHosts("a port that moved has its new host", "", id)
	api.Must("POST", "/networking/v2.0/ports/"+port+"/bindings",
		servertest.Object{"binding": servertest.Object{"host": "cmp-1"}})
	api.Must("PUT", "/networking/v2.0/ports/"+port+"/bindings/cmp-1/activate", servertest.Object{})
	awaitHosts("a port after a live migration has its new host", id, "")
	bind("")
	awaitHosts("an unbound port has no host", "", "")

	writes := 0
	for i := c.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
		e, err := i.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetEventId() <= 5 && e.GetUpsertWorkflowSearchAttributesEventAttributes() != nil {
			writes++
		}
	}
	if writes != 0 {
		t.Error(
			"the first read of a new port wrote search attributes, want none, because the start of the workflow has set them",
		)
	}
}

// TestSearchAttributes_OutdatedHostIsFoundAndRepaired changes the host of a port directly in the database, so
// that the workflow of the port gets no signal and its search attribute keeps the old host.
func TestSearchAttributes_OutdatedHostIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	c := s.StartWorker("api,relay,temporal")
	c.AwaitReady()
	c.RegisterAgents()
	port := createWaitingPort(c)
	id := contract.PortID(port)
	awaitHost := func(what, host, other string) {
		t.Helper()
		s.Await(what, func() string {
			for h, want := range map[string]string{host: id, other: ""} {
				list, err := temporal.ListWorkflow(
					t.Context(),
					&workflowservice.ListWorkflowExecutionsRequest{
						Query: fmt.Sprintf(`BerthResource = 'port' AND BerthHost = '%s'`, h),
					},
				)
				if err != nil {
					return err.Error()
				}
				got := ""
				for _, e := range list.GetExecutions() {
					got += e.GetExecution().GetWorkflowId()
				}
				if got != want {
					return fmt.Sprintf("found %q on the host %s, want %q", got, h, want)
				}
			}
			return ""
		})
	}
	awaitMetrics := func(what string, lines ...string) {
		t.Helper()
		s.Await(what, func() string {
			text := metrics(t, c)
			for _, line := range lines {
				if !strings.Contains(text, "\n"+line+"\n") {
					return "the metrics lack the line " + line
				}
			}
			return ""
		})
	}
	awaitHost("Temporal finds the port on its host", "cmp-1", "cmp-9")
	s.AwaitNone("no note waits", `select workflow_id from note`)

	storetest.Exec(t, s.Database, `update port set host = 'cmp-9' where id = $1`, port)

	awaitMetrics("the reconciler has told the workflow of the port",
		`berth_rows_nudged_total{reason="attributes"} 1`)
	awaitHost("Temporal finds the port on its new host only", "cmp-9", "cmp-1")
	awaitMetrics("no search attribute differs", "berth_search_attribute_drift 0")
}
