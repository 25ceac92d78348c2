package leasestore

import (
	"context"
	"slices"

	"berth/internal/lease"
)

// requirementsKey contains the two texts of a reservation's requirements for hosts: hypervisor_properties and
// resource_properties.
type requirementsKey [2]string

func requirementsKeyOf(d lease.ReservationDraft) requirementsKey {
	return requirementsKey{d.HypervisorProperties, d.ResourceProperties}
}

// hostMatch is the result of matching requirements with all hosts.
type hostMatch struct {
	hosts map[int64]bool // the hosts that meet the requirements
	err   error
}

// hostMatches contains the result for each pair of texts. A transaction matches each pair only once, because
// the reservations of a lease, the attempts to change one reservation, and the starts that a plan tries often
// have the same requirements.
type hostMatches map[requirementsKey]hostMatch

// match returns the result for requirements, and matches them with all hosts if there is no result yet.
func (m hostMatches) match(all []lease.HostCandidate, key requirementsKey) hostMatch {
	known, ok := m[key]
	if ok {
		return known
	}
	requirements, err := lease.HostRequirements(key[0], key[1])
	known = hostMatch{hosts: map[int64]bool{}, err: err}
	if err == nil {
		all, known.err = lease.MatchCandidates(all, requirements)
		for i := range all {
			known.hosts[all[i].ID] = true
		}
	}
	m[key] = known
	return known
}

// matchHosts returns the hosts that meet the requirements of a reservation. The parameter `all` contains all
// hosts.
func (t *transaction) matchHosts(
	all []lease.HostCandidate,
	d lease.ReservationDraft,
) ([]lease.HostCandidate, error) {
	match := t.matches.match(all, requirementsKeyOf(d))
	if match.err != nil {
		return nil, match.err
	}
	return slices.DeleteFunc(all, func(c lease.HostCandidate) bool { return !match.hosts[c.ID] }), nil
}

// matchInAdvance matches the requirements of reservations with all hosts. The caller has not locked hosts or
// allocations yet, so that other transactions do not wait while the requirements are matched. matchHosts
// returns the faults of the requirements later, if a reservation needs hosts at all.
func (t *transaction) matchInAdvance(
	ctx context.Context,
	l lease.Lease,
	reservations []lease.Reservation,
) error {
	var hosts []lease.HostCandidate
	for _, r := range reservations {
		key := requirementsKeyOf(r.ReservationDraft)
		if _, known := t.matches[key]; known || key == (requirementsKey{}) ||
			r.Type != lease.PhysicalHost && r.Type != lease.VirtualInstance {
			continue
		}
		if hosts == nil {
			all, err := readHosts(ctx, t, `true`)
			if err != nil {
				return err
			}
			hosts = lease.HostCandidates(all)
		} else if err := t.search.proceed(ctx, l.StartAt); err != nil {
			return err
		}
		t.matches.match(hosts, key)
	}
	return nil
}
