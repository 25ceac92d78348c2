package torture

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// onHost asks for one certain host of the plot.
func (p *plot) onHost(n int) servertest.Object {
	return servertest.Object{"resource_type": "physical:host", "min": 1, "max": 1, "resource_properties": p.mine(),
		"hypervisor_properties": `["=","$hypervisor_hostname","` + p.hosts[n-1] + `"]`}
}

func TestLease_OverdueEventsRunInOrder(t *testing.T) {
	t.Parallel()
	o := newOvercast(t)
	p := o.plot(t, 2)
	begin := time.Now().Truncate(time.Second).Add(20 * time.Second) // all leases are created before the first is due
	at := func(in time.Duration) time.Duration { return time.Until(begin.Add(in)) + 500*time.Millisecond }
	over := p.lease(at(5*time.Second), at(7*time.Second), p.onHost(1))
	follower := p.lease(at(7*time.Second), at(8*time.Second), p.onHost(1))
	last := p.lease(at(8*time.Second), at(2*time.Hour), p.onHost(1))
	other := p.lease(at(6*time.Second), at(2*time.Hour), p.onHost(2))
	o.Await("all is due", func() string { return map[bool]string{true: "not yet"}[time.Since(begin) < 9*time.Second] })

	o.StartWorker("relay,temporal")

	over.settled("TERMINATED DONE DONE deleted")
	follower.settled("TERMINATED DONE DONE deleted")
	last.settled("ACTIVE DONE UNDONE active")
	other.settled("ACTIVE DONE UNDONE active")
	if got := p.pools(last.reservations[0], other.reservations[0]); got != "a:1 b:2" {
		t.Errorf("Nova's aggregates are %s", got)
	}
	order := o.Rows(`
		select l.id || ' ' || e.event_type
		from event e join lease l on l.id = e.lease_id
		where e.status = 'DONE' and l.id::text = any($1)
		order by e.updated_at`, []string{over.id, follower.id, last.id})
	var want []string
	for _, l := range []*tenancy{over, follower} {
		want = append(want, l.id+" start_lease", l.id+" before_end_lease", l.id+" end_lease")
	}
	o.Same("what was done", append(want, last.id+" start_lease"), order)
}

func TestLease_ContinuesStepAfterWorkerKilled(t *testing.T) {
	t.Parallel()
	o := newOvercast(t)
	victim := o.StartWorker("relay,temporal")
	p := o.plot(t, 2)
	l := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1), p.instances(1, "True"))
	l.settles("freepool:1,2")
	met, lift := p.refuse("POST", "reservation:"+l.reservations[1], http.StatusServiceUnavailable) // its server group
	awaited := func() {
		t.Helper()
		p.until("the cloud was asked in vain", func() string { return map[bool]string{true: "not yet"}[met() == 0] })
	}
	l.begin()
	awaited()
	victim.Kill()
	l.becomes("STARTING")
	lift()
	victim = o.StartWorker("relay,temporal")
	l.settled("ACTIVE DONE UNDONE active active")
	if f, groups := p.of(l.reservations[1]); f == nil || groups != 1 {
		t.Errorf("%+v, %d groups", f, groups)
	}

	met, lift = p.refuse("DELETE", "/flavors/"+l.reservations[1], http.StatusServiceUnavailable)
	l.end()
	awaited()
	victim.Kill()
	l.becomes("TERMINATING")
	lift()
	o.StartWorker("relay,temporal")
	l.settled("TERMINATED DONE DONE deleted deleted")
	if f, groups := p.of(l.reservations[1]); f != nil || groups != 0 {
		t.Errorf("left: %+v, %d groups", f, groups)
	}
	l.settles("freepool:1,2")
}

// sweep watches the hosts once.
func (o *overcast) sweep() {
	o.Helper()
	run, err := o.temporal.ExecuteWorkflow(o.Context(), client.StartWorkflowOptions{ID: contract.MaintenanceID("by hand"),
		TaskQueue: contract.TaskQueue(contract.Maintenance)}, contract.Maintenance, contract.Input{Key: contract.KeySweep})
	if err == nil {
		err = run.Get(o.Context(), nil)
	}
	if err != nil {
		o.Fatal(err)
	}
}

// flags are what the API tells of the lease's health.
func (t *tenancy) flags() string {
	t.T.Helper()
	now := t.now()
	flags := map[string]bool{"degraded": now["degraded"].(bool)}
	for _, r := range now["reservations"].([]any) {
		for _, name := range []string{"missing_resources", "resources_changed"} {
			flags[name] = flags[name] || r.(servertest.Object)[name].(bool)
		}
	}
	var all []string
	for name, is := range flags {
		if is {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestHealing_MovesReservationsInNovaAggregates(t *testing.T) {
	t.Parallel()
	listener := &notifytest.Webhook{}
	o := newOvercast(t, "BERTH_LEASE_MONITOR=on", "BERTH_LEASE_WEBHOOK_URL="+servertest.Serve(t, listener))
	o.StartWorker("relay,temporal")
	p := o.plot(t, 3)
	whole, some := p.lease(time.Hour, 2*time.Hour, p.onHost(1)), p.lease(time.Hour, 2*time.Hour, p.instances(2, nil))
	p.api.Must("PUT", whole.path, servertest.Object{"reservations": []servertest.Object{{"id": whole.reservations[0], "hypervisor_properties": ""}}})
	later := p.lease(20*time.Hour, 21*time.Hour, p.whole(3, 3))
	for _, l := range []*tenancy{whole, some} {
		l.begin()
		l.becomes("ACTIVE")
	}
	both := append(slices.Clone(whole.reservations), some.reservations...)
	for i, step := range []struct {
		host         int
		state        string
		pools        string
		flags, other string // of the whole host, and of the instances
	}{
		{1, "up", "a:1 b:2 freepool:2,3", "", ""},
		{1, "down", "a:3 b:2 freepool:1,2", "degraded resources_changed", ""},
		{2, "disabled", "a:3 freepool:1,2", "degraded resources_changed", "degraded missing_resources"}, // nobody has room
		{1, "up", "a:3 b:1 freepool:1,2", "degraded resources_changed", "degraded resources_changed"},
		{2, "up", "a:3 b:1 freepool:1,2", "degraded resources_changed", "degraded resources_changed"},
		{3, "down", "a:2 b:1 freepool:1,3", "degraded resources_changed", "degraded resources_changed"},
		{3, "up", "a:2 b:1 freepool:1,3", "degraded resources_changed", "degraded resources_changed"},
	} {
		if i == 1 || i == 4 {
			listener.InjectFaults(notifytest.Fault{Status: 503}, notifytest.Fault{DropConnection: true, Applied: true})
		}
		p.Nova.SetHypervisor(p.hosts[step.host-1], step.state)
		o.sweep()
		p.until(fmt.Sprintf("after step %d the aggregates are %s", i, step.pools), func() string {
			if got := p.pools(both...); got != step.pools {
				return "they are " + got
			}
			return ""
		})
		if got, other := whole.flags(), some.flags(); got != step.flags || other != step.other {
			t.Errorf("after step %d: %q and %q", i, got, other)
		}
		if got := later.flags(); got != "" {
			t.Errorf("after step %d a lease beyond the healing interval is %s", i, got)
		}
	}
	whole.end()
	some.end()
	whole.settled("TERMINATED DONE DONE deleted")
	some.settled("TERMINATED DONE DONE deleted")
	whole.settles("freepool:1,2,3")
	hears(p, listener, whole, "create update update start_lease.begin start_lease health health update before_end_lease end_lease.begin end_lease")
	hears(p, listener, some, "create update start_lease.begin start_lease health health update before_end_lease end_lease.begin end_lease")
	hears(p, listener, later, "create")
}

// hears waits until a listener has heard all that became of a lease in its order, each at least once.
func hears(p *plot, listener *notifytest.Webhook, l *tenancy, want string) {
	p.T.Helper()
	p.until("it is heard: "+want, func() string {
		var heard []string
		for _, typ := range heardOf(listener, path.Base(l.path)) {
			heard = append(heard, strings.TrimPrefix(strings.TrimPrefix(typ, "lease."), "event."))
		}
		if got := strings.Join(heard, " "); got != want {
			return "it was " + got
		}
		return ""
	})
}
