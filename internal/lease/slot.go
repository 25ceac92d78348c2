package lease

import (
	"maps"
	"slices"
	"time"
)

// Busy is a host that a reservation has for a while.
type Busy struct {
	Host     int64
	From, To time.Time
	Stuck    bool // the reservation failed to leave it: nobody knows until when
}

// Later is a draft whose dates all lie that much later.
func (d Draft) Later(s Schedule, start time.Time) Draft {
	by := start.Sub(s.Start)
	d.Start, d.End = Moment{At: start}, Moment{At: s.End.Add(by)}
	if d.BeforeEnd != nil {
		at := d.BeforeEnd.Add(by)
		d.BeforeEnd = &at
	}
	return d
}

// Earliest is the first start, from the schedule's and not after latest, at which every reservation of the draft
// finds its hosts for as long as the schedule lasts. It chooses as a creation does. A lease can only begin to fit
// when somebody leaves a host, so only those instants are looked at.
func Earliest(d Draft, s Schedule, latest time.Time, hosts []Host, busy []Busy) (time.Time, error) {
	starts := []time.Time{s.Start}
	booked, stuck, byHost := map[int64]bool{}, map[int64]bool{}, map[int64][]Busy{}
	for _, b := range busy {
		stuck[b.Host] = stuck[b.Host] || b.Stuck
		booked[b.Host], byHost[b.Host] = true, append(byHost[b.Host], b)
		if b.To.After(s.Start) {
			starts = append(starts, b.To)
		}
	}
	for _, all := range byHost {
		slices.SortFunc(all, func(a, b Busy) int { return a.To.Compare(b.To) })
		for i := len(all) - 2; i >= 0; i-- { // instances are there at the same time
			all[i].From = earliest(all[i].From, all[i+1].From)
		}
	}
	matching, err := matchingEach(d.Reservations, hosts, stuck)
	if err != nil {
		return time.Time{}, err
	}
	slices.SortFunc(starts, time.Time.Compare)
	for _, start := range slices.CompactFunc(starts, time.Time.Equal) {
		if start.After(latest) {
			break
		}
		if fits(d.Reservations, matching, booked, takenIn(byHost, start, start.Add(s.End.Sub(s.Start)))) {
			return start, nil
		}
	}
	return time.Time{}, Refuse(NotEnoughHosts, "Not enough hosts available at any start until %s", latest.UTC().Format(time.RFC3339))
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// matchingEach is which hosts meet the requirements of each reservation. A stuck one cannot be reserved.
func matchingEach(reservations []ReservationDraft, hosts []Host, stuck map[int64]bool) ([][]Candidate, error) {
	all := make([]Candidate, len(hosts))
	for i, h := range hosts {
		h.Reservable = h.Reservable && !stuck[h.ID]
		all[i] = Candidate{Host: h}
	}
	each := make([][]Candidate, len(reservations))
	for i, r := range reservations {
		requirements, err := Requirements(r.HypervisorProperties, r.ResourceProperties)
		if err != nil {
			return nil, err
		}
		if each[i], err = Matching(all, requirements); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// takenIn is which hosts somebody has in a window. Of each host the next one to leave it counts, who is given as there
// from the first of all who leave it later.
func takenIn(byHost map[int64][]Busy, from, to time.Time) map[int64]bool {
	taken := map[int64]bool{}
	for host, all := range byHost {
		i, _ := slices.BinarySearchFunc(all, from, func(b Busy, from time.Time) int {
			if b.To.After(from) {
				return 1
			}
			return -1
		})
		taken[host] = i < len(all) && all[i].From.Before(to)
	}
	return taken
}

// fits tells whether each reservation in turn finds hosts that are not taken, also not by the one before it.
func fits(reservations []ReservationDraft, matching [][]Candidate, booked, taken map[int64]bool) bool {
	booked = maps.Clone(booked)
	for i, r := range reservations {
		candidates := slices.Clone(matching[i])
		for j := range candidates {
			c := &candidates[j]
			c.Booked, c.Free = booked[c.ID], !taken[c.ID]
		}
		picked, err := Pick(candidates, r.Min, r.Max)
		if err != nil {
			return false
		}
		for _, id := range picked {
			booked[id], taken[id] = true, true
		}
	}
	return true
}
