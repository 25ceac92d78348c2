package relay_test

import (
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestDeliver_HidesProjectsIfConfigured(t *testing.T) {
	t.Parallel()
	n, s := temporaltest.New(t), storetest.New(t)
	r := newRelay(s, n.Client, n.Name)
	for _, hide := range []bool{false, true} {
		r.HideProjects = hide
		workflow := contract.PortID(uuid.NewString())
		err := s.DB.InTx(t.Context(), func(tx db.Tx) error {
			return outbox.Enqueue(t.Context(), tx, contract.Nudge{
				Workflow:   contract.Port,
				ID:         workflow,
				Attributes: contract.Attributes{Project: "blue", Host: "cmp-1"},
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, err := n.Client.DescribeWorkflowExecution(t.Context(), workflow, "")
		if err != nil {
			t.Fatal(err)
		}
		found := d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
		if (found[contract.AttributeProject] == nil) != hide || found[contract.AttributeHost] == nil {
			t.Errorf("search attributes with HideProjects %t: got %v, want the host, and a project only if false", hide, found)
		}
	}
}
