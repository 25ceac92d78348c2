package lease

import (
	"maps"
	"slices"
	"time"
)

// HostBooking is the booking of a host by a reservation for a time window.
type HostBooking struct {
	Host     int64
	From, To time.Time
	Stuck    bool // the reservation failed to release the host, so the end of the booking is unknown
}

// StartingAt returns the draft with all dates of the draft shifted by the same duration, so that the lease
// starts at the given time.
func (d Draft) StartingAt(s Schedule, start time.Time) Draft {
	by := start.Sub(s.Start)
	d.Start, d.End = RequestedDate{At: start}, RequestedDate{At: s.End.Add(by)}
	if d.BeforeEnd != nil {
		at := d.BeforeEnd.Add(by)
		d.BeforeEnd = &at
	}
	return d
}

// EarliestStart returns the earliest time at which a lease can start so that every reservation of the draft
// gets its hosts for the duration of the schedule. The time that EarliestStart returns is not before the
// start of the schedule and not after `latest`. EarliestStart chooses hosts by the same rules as the creation
// of a lease does. EarliestStart tries only the start of the schedule and each later time at which a host
// becomes free. Before each start except the first, and before it matches the requirements of each
// reservation except the first, EarliestStart calls `proceed`, and returns its error.
func EarliestStart(
	d Draft,
	s Schedule,
	latest time.Time,
	hosts []Host,
	busy []HostBooking,
	proceed func(next time.Time) error,
) (time.Time, error) {
	starts := []time.Time{s.Start}
	booked, stuck, byHost := map[int64]bool{}, map[int64]bool{}, map[int64][]HostBooking{}
	for _, b := range busy {
		stuck[b.Host] = stuck[b.Host] || b.Stuck
		booked[b.Host], byHost[b.Host] = true, append(byHost[b.Host], b)
		if b.To.After(s.Start) {
			starts = append(starts, b.To)
		}
	}
	for _, all := range byHost {
		slices.SortFunc(all, func(a, b HostBooking) int { return a.To.Compare(b.To) })
		// bookings can overlap, because several instances can use a host at the same time
		for i := len(all) - 2; i >= 0; i-- {
			all[i].From = earlierOf(all[i].From, all[i+1].From)
		}
	}
	matching, err := matchingHosts(d.Reservations, hosts, stuck, func() error { return proceed(s.Start) })
	if err != nil {
		return time.Time{}, err
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i, start := range slices.CompactFunc(starts, time.Time.Equal) {
		if start.After(latest) {
			break
		}
		if i > 0 {
			if err := proceed(start); err != nil {
				return time.Time{}, err
			}
		}
		if allFit(
			d.Reservations, matching, booked, takenHosts(byHost, start, start.Add(s.End.Sub(s.Start))),
		) {
			return start, nil
		}
	}
	return time.Time{}, Faultf(NotEnoughHosts, "Not enough hosts available at any start until %s",
		latest.UTC().Format(time.RFC3339))
}

func earlierOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// matchingHosts returns, for each reservation, the hosts that meet the requirements of the reservation. If a
// reservation has ended but failed to release its host, matchingHosts treats this host as not reservable.
// Before matchingHosts matches the requirements of another reservation, it calls `proceed`.
func matchingHosts(
	reservations []ReservationDraft,
	hosts []Host,
	stuck map[int64]bool,
	proceed func() error,
) ([][]HostCandidate, error) {
	all := HostCandidates(hosts)
	for i := range all {
		all[i].Reservable = all[i].Reservable && !stuck[all[i].ID]
	}
	known := map[[2]string][]HostCandidate{} // reservations often have the same requirements
	each := make([][]HostCandidate, len(reservations))
	for i, r := range reservations {
		key, ok := [2]string{r.HypervisorProperties, r.ResourceProperties}, false
		if each[i], ok = known[key]; ok {
			continue
		}
		if i > 0 {
			if err := proceed(); err != nil {
				return nil, err
			}
		}
		requirements, err := HostRequirements(r.HypervisorProperties, r.ResourceProperties)
		if err != nil {
			return nil, err
		}
		if each[i], err = MatchCandidates(all, requirements); err != nil {
			return nil, err
		}
		known[key] = each[i]
	}
	return each, nil
}

// takenHosts returns, for each host, whether the host is reserved at any time between `from` and `to`. The
// bookings of each host must be in ascending order of their starts and also of their ends, because takenHosts
// makes only one binary search per host.
func takenHosts(byHost map[int64][]HostBooking, from, to time.Time) map[int64]bool {
	taken := map[int64]bool{}
	for host, all := range byHost {
		i, _ := slices.BinarySearchFunc(all, from, func(b HostBooking, from time.Time) int {
			if b.To.After(from) {
				return 1
			}
			return -1
		})
		taken[host] = i < len(all) && all[i].From.Before(to)
	}
	return taken
}

// allFit reports whether every reservation of the draft gets enough free hosts, if each host is given to at
// most one of the reservations.
func allFit(reservations []ReservationDraft, matching [][]HostCandidate, booked, taken map[int64]bool) bool {
	booked = maps.Clone(booked)
	for i, r := range reservations {
		candidates := slices.Clone(matching[i])
		for j := range candidates {
			c := &candidates[j]
			c.Booked, c.Free = booked[c.ID], !taken[c.ID]
		}
		picked, err := PickHosts(candidates, r.Min, r.Max)
		if err != nil {
			return false
		}
		for _, id := range picked {
			booked[id], taken[id] = true, true
		}
	}
	return true
}
