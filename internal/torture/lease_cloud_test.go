package torture

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// overcast is berth beside a Nova and a Neutron that do not always do what they are asked.
type overcast struct {
	*servertest.Deployment
	*obstacles
	api      *servertest.Worker
	neutron  *notifytest.Neutron
	temporal client.Client
}

// newOvercast starts the API; settings win over the usual ones.
func newOvercast(t *testing.T, settings ...string) *overcast {
	t.Helper()
	s, c := servertest.SharedDeployment(t)
	o := &overcast{Deployment: s, obstacles: &obstacles{}, neutron: &notifytest.Neutron{}, temporal: c}
	s.Settings = append(append(s.Settings, "BERTH_NOVA_URL="+servertest.Serve(t, o.before(s.Nova)), "BERTH_NEUTRON_URL="+servertest.Serve(t, o.before(o.neutron)),
		"BERTH_LEASE_PATIENCE=5m"), settings...)
	o.api = s.StartWorker("api")
	return o
}

// obstacles stand before the cloud.
type obstacles struct {
	mu  sync.Mutex
	all []*obstacle
}

// obstacle answers requests of that method of which the path or the body holds a text.
type obstacle struct {
	method, text string
	status, met  int
}

// refuse answers such requests with that status until lift is called.
func (o *obstacles) refuse(method, text string, status int) (met func() int, lift func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	new := &obstacle{method: method, text: text, status: status}
	o.all = append(o.all, new)
	return func() int {
			o.mu.Lock()
			defer o.mu.Unlock()
			return new.met
		}, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.all = slices.DeleteFunc(o.all, func(other *obstacle) bool { return other == new })
		}
}

func (o *obstacles) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		if status := o.meet(r.Method, r.URL.RequestURI()+" "+string(raw)); status != 0 {
			w.WriteHeader(status)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (o *obstacles) meet(method, text string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.all {
		if each.method == method && strings.Contains(text, each.text) {
			each.met++
			return each.status
		}
	}
	return 0
}

// plot is some hosts that only the leases of one test may have.
type plot struct {
	*overcast
	*testing.T
	name  string
	hosts []string
	ids   []string // of the hosts
}

func (o *overcast) plot(t *testing.T, hosts int) *plot {
	t.Helper()
	p := &plot{overcast: o, T: t, name: "row-" + uuid.NewString()[:8]}
	for i := range hosts {
		name := fmt.Sprintf("%s-%d", p.name, i+1)
		provider := o.api.Must("POST", "/placement/resource_providers", servertest.Object{"name": name})
		o.api.Must("PUT", fmt.Sprint("/placement/resource_providers/", provider["uuid"], "/inventories"), servertest.Object{"resource_provider_generation": provider["generation"],
			"inventories": servertest.Object{"VCPU": servertest.Object{"total": 8}, "MEMORY_MB": servertest.Object{"total": 8192}, "DISK_GB": servertest.Object{"total": 100}}})
		host := o.api.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": name, "row": p.name})["host"].(servertest.Object)
		p.hosts, p.ids = append(p.hosts, name), append(p.ids, fmt.Sprint(host["id"]))
	}
	return p
}

// until is the site's for this test.
func (p *plot) until(what string, f func() string) {
	p.T.Helper()
	p.waiting().Await(what, f)
}

func (p *plot) waiting() *servertest.Deployment {
	return &servertest.Deployment{T: p.T, Database: p.Database, Controller: p.Controller, Nova: p.Nova}
}

// whole asks for whole hosts of the plot.
func (p *plot) whole(least, most int) servertest.Object {
	return servertest.Object{"resource_type": "physical:host", "min": least, "max": most, "hypervisor_properties": "", "resource_properties": p.mine()}
}

func (p *plot) mine() string { return `["=","$row","` + p.name + `"]` }

// of asks for instances of which a host has room for four.
func (p *plot) instances(amount int, affinity any) servertest.Object {
	return servertest.Object{"resource_type": "virtual:instance", "vcpus": 2, "memory_mb": 512, "disk_gb": 5, "amount": amount, "affinity": affinity,
		"resource_properties": p.mine()}
}

// lease makes a lease from then to then.
func (p *plot) lease(start, end time.Duration, reservations ...servertest.Object) *tenancy {
	p.T.Helper()
	l := p.api.Must("POST", "/reservation/v1/leases", servertest.Object{"name": p.name, "start_date": second(start), "end_date": second(end), "events": []servertest.Object{},
		"reservations": reservations})["lease"].(servertest.Object)
	t := &tenancy{plot: p, path: fmt.Sprint("/reservation/v1/leases/", l["id"]), id: fmt.Sprint(l["id"])}
	for _, r := range t.now()["reservations"].([]any) {
		t.reservations = append(t.reservations, fmt.Sprint(r.(servertest.Object)["id"]))
	}
	return t
}

// tenancy is a lease of a plot.
type tenancy struct {
	*plot
	path, id     string
	reservations []string
}

func (t *tenancy) now() servertest.Object {
	t.T.Helper()
	return t.api.Must("GET", t.path, nil)["lease"].(servertest.Object)
}

// begin lets the lease start now.
func (t *tenancy) begin() {
	t.T.Helper()
	t.api.Must("PUT", t.path, servertest.Object{"start_date": second(0)})
}

// end lets the lease end now.
func (t *tenancy) end() {
	t.T.Helper()
	t.api.Must("PUT", t.path, servertest.Object{"end_date": second(0)})
}

func (t *tenancy) becomes(status string) {
	t.T.Helper()
	t.until("the lease is "+status, func() string {
		if now := t.now(); now["status"] != status {
			return fmt.Sprint("it is ", now["status"], ": ", now["berth:why"])
		}
		return ""
	})
}

// gone waits until the lease is deleted.
func (t *tenancy) gone() {
	t.T.Helper()
	t.until("the lease is gone", func() string {
		code, o, err := t.api.Do("GET", t.path, nil)
		if code != http.StatusNotFound {
			return fmt.Sprint(code, o, err)
		}
		return ""
	})
}

// statuses are those of the lease, its start, its end and its reservations.
func (t *tenancy) statuses() string {
	t.T.Helper()
	return strings.Join(t.waiting().Rows(`
		select l.status || ' ' || (select string_agg(e.status, ' ' order by e.event_type desc) from event e where e.lease_id = l.id and e.event_type <> 'before_end_lease')
			|| ' ' || coalesce((select string_agg(r.status, ' ' order by r.position) from reservation r where r.lease_id = l.id), '')
		from lease l
		where l.id = $1`, t.id), "")
}

// cloud is the hosts of the plot in each aggregate, in which the reservations of the lease are called a, b and so on.
func (t *tenancy) cloud() string { return t.plot.pools(t.reservations...) }

func (p *plot) pools(reservations ...string) string {
	var all []string
	for _, a := range p.Nova.ComputeState().Aggregates {
		var hosts []string
		for i, h := range p.hosts {
			if slices.Contains(a.Hosts, h) {
				hosts = append(hosts, fmt.Sprint(i+1))
			}
		}
		name := a.Name
		if i := slices.Index(reservations, name); i >= 0 {
			name = string(rune('a' + i))
		}
		if len(hosts) > 0 {
			all = append(all, name+":"+strings.Join(hosts, ","))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// settles waits until the cloud has the plot's hosts in those aggregates.
func (t *tenancy) settles(want string) {
	t.T.Helper()
	t.until("Nova's aggregates are "+want, func() string {
		if got := t.cloud(); got != want {
			return "they are " + got
		}
		return ""
	})
}
