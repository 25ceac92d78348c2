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
	matching, err := matchingEach(d.Reservations, hosts)
	if err != nil {
		return time.Time{}, err
	}
	starts := []time.Time{s.Start}
	booked := map[int64]bool{}
	for _, b := range busy {
		booked[b.Host] = true
		if b.To.After(s.Start) && !b.To.After(latest) {
			starts = append(starts, b.To)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	starts = slices.CompactFunc(starts, time.Time.Equal)
	for _, start := range starts {
		if fits(d.Reservations, matching, booked, takenIn(busy, start, start.Add(s.End.Sub(s.Start)))) {
			return start, nil
		}
	}
	return time.Time{}, Refuse(NotEnoughHosts, "Not enough hosts available at any start until %s", latest.UTC().Format(time.RFC3339))
}

// matchingEach is which hosts meet the requirements of each reservation.
func matchingEach(reservations []ReservationDraft, hosts []Host) ([][]Candidate, error) {
	all := make([]Candidate, len(hosts))
	for i, h := range hosts {
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

func takenIn(busy []Busy, from, to time.Time) map[int64]bool {
	taken := map[int64]bool{}
	for _, b := range busy {
		if b.Stuck || b.From.Before(to) && b.To.After(from) {
			taken[b.Host] = true
		}
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
