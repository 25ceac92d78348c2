package kills

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestJournal_EveryEntryHasOneExecution records journal entries in every situation: chains and trees of
// dependent entries, bursts of entries, entries that gather while the controller is unavailable, a failed
// entry that a recovery repairs, and a full sync. While entries are recorded, the test kills a worker. At the
// end of the test, each row of the journal must have exactly one workflow execution, whose result has the
// attempts and the state of the row.
func TestJournal_EveryEntryHasOneExecution(t *testing.T) {
	t.Parallel()
	gathered := min(storetest.Rounds(t, 10), 250) // number of networks; each network leads to 20 entries
	s, temporal := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_QUOTA=off")
	api, victim := s.StartWorker("api,relay,temporal"), s.StartWorker("relay,temporal")

	createTrees(s, api, 10)
	victim.Kill()
	createTrees(s, api, 5)
	createChain(s, api, 100)
	createBurst(s, api, 100)
	s.StartWorker("relay,temporal")

	s.Controller.InjectFaults(odltest.Fault{Status: 503, Times: 1 << 30})
	createTrees(s, api, gathered)
	s.Controller.ClearFaults()
	s.AwaitNone("all gathered entries are mirrored", servertest.UnfinishedEntries)

	s.Controller.InjectFaults(odltest.Fault{
		Method: http.MethodPost,
		Type:   "network",
		Status: 400,
		Times:  100,
	})
	failed := api.CreateNetwork("refused")
	s.Await("the refused entry has failed", func() string {
		return strings.Join(
			s.Rows(
				`select 'entry ' || seq || ' is ' || state from journal_entry where object_id = $1 and state <> 'failed'`,
				failed,
			),
			"",
		)
	})
	s.Controller.ClearFaults()
	awaitRun(s, api, "recovery", startRun(api, "recovery"))
	if err := s.Controller.LoseAll(); err != nil {
		t.Fatal(err)
	}
	awaitRun(s, api, "full-sync", startRun(api, "full-sync"))
	s.AwaitNone("all entries are mirrored", servertest.UnfinishedEntries)

	checkExecutions(s, temporal)
}

// createTrees creates networks concurrently, each with a subnet and nine ports, and deletes the ports. For
// each network, berth records 20 journal entries.
func createTrees(s *servertest.Deployment, api *servertest.Worker, networks int) {
	s.Helper()
	var clients errgroup.Group
	clients.SetLimit(8)
	for range networks {
		clients.Go(func() error {
			network, err := create(api, "network", servertest.Object{"name": "tree"})
			if err != nil {
				return err
			}
			if _, err := create(api, "subnet", servertest.SubnetBody(network)); err != nil {
				return err
			}
			var ports []string
			for range 9 {
				port, err := create(api, "port", servertest.Object{"network_id": network})
				if err != nil {
					return err
				}
				ports = append(ports, port)
			}
			for _, port := range ports {
				if status, answer, err := api.Do("DELETE", "/networking/v2.0/ports/"+port, nil); err != nil ||
					status != http.StatusNoContent {
					return fmt.Errorf(
						"delete port %s: got status %d, body %v, error %w; want status 204",
						port, status, answer, err,
					)
				}
			}
			return nil
		})
	}
	if err := clients.Wait(); err != nil {
		s.Fatal(err)
	}
}

// create creates an object through the Networking API and returns the ID of the object.
func create(api *servertest.Worker, typ string, attributes servertest.Object) (string, error) {
	status, answer, err := api.Do("POST", "/networking/v2.0/"+typ+"s", servertest.Object{typ: attributes})
	if err != nil || status != http.StatusCreated {
		return "", fmt.Errorf("create %s: got status %d, body %v, error %w; want success",
			typ, status, answer, err)
	}
	return answer[typ].(servertest.Object)["id"].(string), nil
}

// createChain updates one network several times. The journal entry of each update waits for the entry of the
// update before it.
func createChain(s *servertest.Deployment, api *servertest.Worker, updates int) {
	s.Helper()
	network := api.CreateNetwork("chain")
	for i := range updates {
		api.Must("PUT", "/networking/v2.0/networks/"+network,
			servertest.Object{"network": servertest.Object{"name": fmt.Sprint("chain-", i)}})
	}
}

// createBurst creates several networks in one request, so that berth records entries that wait for no other
// entry.
func createBurst(s *servertest.Deployment, api *servertest.Worker, networks int) {
	s.Helper()
	all := make([]servertest.Object, networks)
	for i := range all {
		all[i] = servertest.Object{"name": fmt.Sprint("burst-", i)}
	}
	api.Must("POST", "/networking/v2.0/networks", servertest.Object{"networks": all})
}

// checkExecutions waits until no workflow of an entry runs any more, and compares the executions with the
// rows of the journal.
func checkExecutions(s *servertest.Deployment, temporal client.Client) {
	s.Helper()
	want := s.Rows(`
		select format('journal/%s: completed after %s attempts%s', seq, attempt, coalesce(', sent by journal/' || sent_by, ''))
		from journal_entry
		order by 1`)
	var executions []string
	s.Await("each row has an execution that has ended", func() string {
		var open []string
		executions, open = listExecutions(s, temporal)
		switch {
		case len(open) > 0:
			return fmt.Sprintf("%d are open, for example %s", len(open), open[0])
		case len(executions) < len(want):
			return fmt.Sprintf("%d executions for %d rows", len(executions), len(want))
		}
		return ""
	})
	var got []string
	for _, id := range executions {
		var p contract.EntryProgress
		if err := temporal.GetWorkflow(s.Context(), id, "").Get(s.Context(), &p); err != nil {
			s.Errorf("get the result of workflow %s: got error %v, want none", id, err)
		}
		line := fmt.Sprintf("%s: %s after %d attempts", id, p.State, p.Attempts)
		if p.SentBy != "" {
			line += ", sent by " + p.SentBy
		}
		got = append(got, line)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf(
			"the workflow executions differ from the journal's rows, want one execution per row (-rows +executions):\n%s",
			diff,
		)
	}
	s.Logf("the journal has %d entries, and Temporal has %d executions", len(want), len(got))
}

// listExecutions lists the workflow ID of each ended execution of a journal entry, once for each execution,
// and the open executions. A workflow run that has continued as new is not listed, because it belongs to the
// same execution as the run that follows it.
func listExecutions(s *servertest.Deployment, temporal client.Client) (ended, open []string) {
	s.Helper()
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf(
			"WorkflowType = '%s' and ExecutionStatus != 'ContinuedAsNew'",
			contract.JournalEntry,
		),
		PageSize: 1000,
	}
	for {
		page, err := temporal.ListWorkflow(s.Context(), request)
		if err != nil { // if Temporal is too busy to answer, the test tries again
			return nil, []string{"unknown, because listing them failed: " + err.Error()}
		}
		for _, e := range page.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			if e.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				open = append(open, id)
			} else {
				ended = append(ended, id)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return ended, open
		}
	}
}
