package blazar

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
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
	ResourceType string `json:"resource_type"`
	Min          int    `json:"min,omitempty"`
	Max          int    `json:"max,omitempty"`
	Amount       int    `json:"amount,omitempty"`
	// number of hosts; a host with several instances counts once
	HostCount int `json:"host_count"`
	// hostnames, only for callers who may see hosts; a host with several instances is listed several times
	Hosts     []string     `json:"hosts,omitzero"`
	Addresses []netip.Addr `json:"addresses,omitempty"` // floating IPs
}

// planLease returns the resources that a lease would get if a client created it with a POST of the same body,
// or the error that this POST would return. planLease does not change the database. If the body contains
// latest_start, the planned lease may start later than start_date: at the earliest time at which its
// resources are free, but not after latest_start. A project can make one plan at a time. Like a lease, the
// plan names hosts only to a caller who may see hosts.
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
	end, err := b.plans.begin(identity.From(r.Context()))
	if err != nil {
		return 0, nil, err
	}
	defer end()
	d, err := b.draftOf(r, o)
	if err != nil {
		return 0, nil, err
	}
	l, err := b.Store.PlanLease(r.Context(), d, latest)
	if err != nil {
		return 0, nil, err
	}
	plan := planOf(l)
	if accessOf(r).seesHosts() {
		hosts, err := b.Store.Hosts(r.Context())
		if err != nil {
			return 0, nil, err
		}
		plan.addHosts(l, hosts)
	}
	return http.StatusOK, map[string]any{"plan": plan}, nil
}

// runningPlans contains the projects for which a plan is being made. The zero value is ready to use.
type runningPlans struct {
	mutex    sync.Mutex
	projects map[string]bool
}

// begin returns a 429 while another plan of the caller's project is being made, because a plan needs much
// more time than other requests. The caller of begin must call end when the plan is made.
func (p *runningPlans) begin(c identity.Caller) (end func(), err error) {
	name := osapi.ProjectName(c)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.projects[name] {
		return nil, osapi.Fault(http.StatusTooManyRequests, "",
			"Another plan of the project is being made. Try again later.").RetryIn(1)
	}
	if p.projects == nil {
		p.projects = map[string]bool{}
	}
	p.projects[name] = true
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.projects, name)
	}, nil
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

func planOf(l lease.Lease) planView {
	v := planView{
		Name:         l.Name,
		StartDate:    date(l.StartAt),
		EndDate:      date(l.EndAt),
		Reservations: []plannedReservation{},
	}
	for _, r := range l.Reservations {
		v.Reservations = append(v.Reservations, plannedReservation{
			ResourceType: r.Type,
			Min:          r.Min,
			Max:          r.Max,
			Amount:       r.Amount,
			HostCount:    len(r.Hosts),
			Addresses:    r.Addresses,
		})
	}
	return v
}

// addHosts adds the names of the lease's hosts to the plan of the lease.
func (v planView) addHosts(l lease.Lease, hosts []lease.Host) {
	names := map[int64]string{}
	for _, h := range hosts {
		names[h.ID] = h.Hostname
	}
	for i, r := range l.Reservations {
		p := &v.Reservations[i]
		p.Hosts = []string{}
		for _, id := range r.Hosts {
			for range max(r.Slots[id], 1) {
				p.Hosts = append(p.Hosts, names[id])
			}
		}
	}
}
