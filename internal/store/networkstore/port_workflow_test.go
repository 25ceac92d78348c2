package networkstore_test

import (
	"testing"

	"berth/internal/contract"
)

// A port that is deleted while Nova is away is still somebody's work.
func TestWorkflows_DeletedPortUntilNovaEventsAreDelivered(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	if err := g.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}
	id := contract.PortID(p.ID.String())
	left, err := g.Network.NovaEvents(t.Context(), p.ID)
	if err != nil || len(left) != 1 {
		t.Fatalf("%+v %v", left, err)
	}

	for _, want := range []int64{1, 0} {
		if n, err := g.Outbox.RestartWorkflows(t.Context(), []string{id}); n != want || err != nil {
			t.Errorf("revived %d, want %d, error %v", n, want, err)
		}
		if err := g.Network.DeleteNovaEvents(t.Context(), []int64{left[0].ID}); err != nil {
			t.Fatal(err)
		}
	}
}
