package relay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
	"berth/internal/tracing"
)

func TestDeliver_WorkflowNamesTheRequestInItsMemo(t *testing.T) {
	t.Parallel()
	n, s := temporaltest.New(t), storetest.New(t)
	r := newRelay(s, n.Client, n.Name)
	ids := tracing.RequestIDs{ID: "req-" + uuid.NewString(), Global: "req-" + uuid.NewString()}
	workflow := contract.PortID(uuid.NewString())
	enqueue := func(ids tracing.RequestIDs) {
		t.Helper()
		ctx := tracing.WithRequestIDs(t.Context(), ids)
		if err := s.DB.InTx(ctx, func(tx db.Tx) error {
			return outbox.Enqueue(ctx, tx, contract.Nudge{Workflow: contract.Port, ID: workflow, NotRunning: true})
		}); err != nil {
			t.Fatal(err)
		}
	}
	enqueue(ids)
	enqueue(tracing.RequestIDs{}) // a nudge of berth itself does not replace the request
	if _, err := r.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := n.Client.DescribeWorkflowExecution(t.Context(), workflow, "")
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
	if d := cmp.Diff(map[string]string{contract.MemoRequestID: ids.ID, contract.MemoGlobalRequestID: ids.Global}, got); d != "" {
		t.Errorf("memo of the workflow (-want +got):\n%s", d)
	}
}
