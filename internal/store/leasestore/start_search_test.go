package leasestore

import (
	"testing"

	"berth/internal/lease"
)

func TestStartSearch_MatchesRequirementsOnce(t *testing.T) {
	t.Parallel()
	candidates := func(gpu string) []lease.HostCandidate {
		return []lease.HostCandidate{
			{Host: lease.Host{ID: 1, Capabilities: map[string]string{"gpu": gpu}}},
			{Host: lease.Host{ID: 2, Capabilities: map[string]string{"gpu": "none"}}},
		}
	}
	b := allocationRequest{}
	b.ResourceProperties = `["==", "$gpu", "a100"]`
	for name, search := range map[string]*startSearch{"in a search": newStartSearch(0), "outside of a search": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tx := &transaction{search: search}
			if all, err := tx.matchHosts(candidates("a100"), b); err != nil || len(all) != 1 ||
				all[0].ID != 1 {
				t.Fatalf("matching hosts at the first start: got %v and error %v, want host 1", all, err)
			}
			all, err := tx.matchHosts(candidates("changed"), b)
			if again := len(all) == 0; err != nil || again != (search == nil) {
				t.Errorf(
					"matching hosts at the second start, after a change of host 1: got %v and error %v; want host 1 only in a search",
					all,
					err,
				)
			}
		})
	}
}
