package leasestore

import (
	"testing"

	"berth/internal/lease"
)

func TestMatchHosts_RequirementsAreMatchedOnce(t *testing.T) {
	t.Parallel()
	candidates := func(gpu string) []lease.HostCandidate {
		return lease.HostCandidates([]lease.Host{
			{ID: 1, Capabilities: map[string]string{"gpu": gpu}},
			{ID: 2, Capabilities: map[string]string{"gpu": "none"}},
		})
	}
	tx := newTransaction(nil, Config{})
	d := lease.ReservationDraft{ResourceProperties: `["==", "$gpu", "a100"]`}
	for _, gpu := range []string{"a100", "changed"} {
		all, err := tx.matchHosts(candidates(gpu), d)
		if err != nil || len(all) != 1 || all[0].ID != 1 {
			t.Errorf("matching hosts while the GPU of host 1 is %s: got %v and error %v, want host 1",
				gpu, all, err)
		}
	}
	d.ResourceProperties = `["!=", "$gpu", "none"]`
	if all, err := tx.matchHosts(candidates("none"), d); err != nil || len(all) != 0 {
		t.Errorf("hosts that meet other requirements: got %v and error %v, want none", all, err)
	}
}
