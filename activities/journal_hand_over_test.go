package activities_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// noteRecorder records the notes that it would deliver.
type noteRecorder struct {
	free      int
	delivered []string
}

func (r *noteRecorder) FreeDeliveries() int { return r.free }

func (r *noteRecorder) DeliverClaimed(notes []contract.Note) {
	for _, n := range notes {
		r.delivered = append(r.delivered, n.ID)
	}
	slices.Sort(r.delivered)
}

// When an entry completes, its activity starts the workflows of the entries that waited only for
// this entry, up to the number of free deliveries. The activity does not send these entries itself.
func TestTryEntry_StartsTheWorkflowsOfUnblockedEntries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		free   int
		status int // status that the controller answers; 0: no fault
		want   []string
		state  journal.State
	}{
		"deliveries are free":    {64, 0, []string{"journal/2"}, journal.Completed},
		"one delivery is free":   {1, 0, []string{"journal/2"}, journal.Completed},
		"no delivery is free":    {0, 0, nil, journal.Completed},
		"the controller refuses": {64, 503, nil, journal.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMirrorFixture(t)
			// the entries 1 to 4: the network, its subnet and two ports that wait for both
			m.createNetworks(1)
			if tt.status != 0 {
				m.odl.InjectFaults(odltest.Fault{Status: tt.status})
			}
			client, err := newClient(m.controllerURL)
			if err != nil {
				t.Fatal(err)
			}
			notes := &noteRecorder{free: tt.free}
			m.acts = newActivities(activities.Options{Store: m.store, ODL: client, Notes: notes})

			p, err := m.acts.TryEntry(t.Context(), "1")

			if err != nil || p.State != string(tt.state) || p.Attempts != 1 || p.SentBy != "" {
				t.Fatalf(
					"try entry 1: got %+v, error %v; want it %s after one attempt of its own workflow",
					p, err, tt.state,
				)
			}
			if diff := cmp.Diff(tt.want, notes.delivered); diff != "" {
				t.Errorf("delivered notes (-want +got):\n%s", diff)
			}
			if requests := len(m.odl.Requests()); requests != 1 {
				t.Errorf("the controller received %d requests, want only that of entry 1", requests)
			}
		})
	}
}
