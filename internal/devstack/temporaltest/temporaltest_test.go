package temporaltest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
)

func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m)) }

var (
	status     = temporal.NewSearchAttributeKeyKeyword(contract.AttributeStatus)
	waitingFor = temporal.NewSearchAttributeKeyKeywordList(contract.AttributeWaitingFor)
)

// TestNamespacesDoNotMeet runs workflows with the same ID on task queues of the same name in several
// namespaces at the same time. Each worker must get only the workflow of its own namespace.
func TestNamespacesDoNotMeet(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			n := temporaltest.New(t)
			w := worker.New(n.Client, contract.PortQueue,
				worker.Options{DeadlockDetectionTimeout: 10 * time.Minute})
			w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (int, error) {
				err := workflow.UpsertTypedSearchAttributes(ctx, waitingFor.ValueSet([]string{"DHCP", "L2"}))
				return i, err
			}, workflow.RegisterOptions{Name: contract.Port})
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			defer w.Stop()

			run, err := n.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
				ID: contract.PortID("x"), TaskQueue: contract.PortQueue,
				TypedSearchAttributes: temporal.NewSearchAttributes(status.ValueSet("DOWN")),
			}, contract.Port)
			if err != nil {
				t.Fatal(err)
			}
			var got int
			if err := run.Get(t.Context(), &got); err != nil || got != i {
				t.Fatalf(
					"run the workflow in namespace number %d: got result %d, error %v; want the number of its namespace",
					i, got, err,
				)
			}
			awaitListed(t, n, `BerthStatus = 'DOWN' and BerthWaitingFor = 'L2'`)
		})
	}
}

func awaitListed(t *testing.T, n temporaltest.Namespace, query string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		found, err := n.Client.ListWorkflow(t.Context(),
			&workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Executions) == 1 {
			return
		}
	}
	t.Errorf(
		"list workflows with the query %s: want exactly one workflow in the list within ten minutes",
		query,
	)
}
