package leasestore

import (
	"cmp"
	"slices"
	"time"

	"berth/internal/lease"
)

// defaultPlanBudget is the default of Config.PlanBudget.
const defaultPlanBudget = time.Second

// startSearch is the search for the earliest start of one lease. It limits the time of the search, and
// remembers which hosts meet the requirements of each reservation, because the requirements are the same at
// each start.
type startSearch struct {
	begin   time.Time
	budget  time.Duration
	matches map[[2]string]hostMatch // by hypervisor properties and resource properties
}

// hostMatch is the result of matching requirements with all hosts.
type hostMatch struct {
	hosts map[int64]bool // the hosts that meet the requirements
	err   error
}

func newStartSearch(budget time.Duration) *startSearch {
	return &startSearch{
		begin:   time.Now(),
		budget:  cmp.Or(budget, defaultPlanBudget),
		matches: map[[2]string]hostMatch{},
	}
}

// proceed returns a fault if the budget is used up, so that the search does not try the next start.
func (s *startSearch) proceed(next time.Time) error {
	if time.Since(s.begin) < s.budget {
		return nil
	}
	return lease.Faultf(lease.SearchTooLong,
		"The search for a start has taken %s, and no start before %s has enough resources. Search from this start.",
		s.budget, next.UTC().Format(time.RFC3339))
}

// matchHosts returns the candidates that meet the requirements of a reservation. A search matches the
// requirements only once.
func (t *transaction) matchHosts(
	candidates []lease.HostCandidate,
	b allocationRequest,
) ([]lease.HostCandidate, error) {
	key := [2]string{b.HypervisorProperties, b.ResourceProperties}
	if t.search != nil {
		if known, ok := t.search.matches[key]; ok {
			unknown := func(c lease.HostCandidate) bool { return !known.hosts[c.ID] }
			return slices.DeleteFunc(candidates, unknown), known.err
		}
	}
	requirements, err := lease.HostRequirements(key[0], key[1])
	if err != nil {
		return nil, err
	}
	matching, err := lease.MatchCandidates(candidates, requirements)
	if t.search != nil {
		m := hostMatch{map[int64]bool{}, err}
		for _, c := range matching {
			m.hosts[c.ID] = true
		}
		t.search.matches[key] = m
	}
	return matching, err
}
