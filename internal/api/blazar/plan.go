package blazar

import (
	"net/http"
	"net/netip"
	"time"

	"berth/internal/lease"
)

// planView is the JSON format of a planned lease, which does not exist yet and has no ID.
type planView struct {
	Name         string               `json:"name"`
	StartDate    string               `json:"start_date"`
	EndDate      string               `json:"end_date"`
	Reservations []plannedReservation `json:"reservations"`
}

type plannedReservation struct {
	ResourceType string       `json:"resource_type"`
	Min          int          `json:"min,omitempty"`
	Max          int          `json:"max,omitempty"`
	Amount       int          `json:"amount,omitempty"`
	Hosts        []string     `json:"hosts"`               // hostnames; a host with several instances is listed several times
	Addresses    []netip.Addr `json:"addresses,omitempty"` // floating IPs
}

// planLease returns the resources that a lease would get if a client created it with a POST of the same body, or the error that this POST
// would return. planLease does not change the database. If the body contains latest_start, the planned lease may start later than
// start_date: at the earliest time at which its resources are free, but not after latest_start.
func (b *handler) planLease(r *http.Request) (int, any, error) {
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	latest, err := latestStart(o)
	if err != nil {
		return 0, nil, err
	}
	delete(o, "latest_start")
	d, err := b.draftOf(r, o)
	if err != nil {
		return 0, nil, err
	}
	l, err := b.Store.PlanLease(r.Context(), d, latest)
	if err != nil {
		return 0, nil, err
	}
	hosts, err := b.Store.Hosts(r.Context())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"plan": planOf(l, hosts)}, nil
}

func latestStart(o object) (*time.Time, error) {
	if !o.has("latest_start") {
		return nil, nil
	}
	s, err := o.text("latest_start")
	if err != nil {
		return nil, err
	}
	at, err := instant(s)
	return &at, err
}

func planOf(l lease.Lease, hosts []lease.Host) planView {
	names := map[int64]string{}
	for _, h := range hosts {
		names[h.ID] = h.Hostname
	}
	v := planView{Name: l.Name, StartDate: date(l.StartAt), EndDate: date(l.EndAt), Reservations: []plannedReservation{}}
	for _, r := range l.Reservations {
		p := plannedReservation{ResourceType: r.Type, Min: r.Min, Max: r.Max, Amount: r.Amount, Hosts: []string{}, Addresses: r.Addresses}
		for _, id := range r.Hosts {
			for range max(r.Slots[id], 1) {
				p.Hosts = append(p.Hosts, names[id])
			}
		}
		v.Reservations = append(v.Reservations, p)
	}
	return v
}
