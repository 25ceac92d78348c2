package torture

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// TestLease_WithNovaAndNeutron tells what becomes of leases and of the cloud. All stories run beside each other: nobody's trouble
// is another's.
func TestLease_WithNovaAndNeutron(t *testing.T) {
	t.Parallel()
	tellStories(t, newOvercast(t), map[string]story{
		"a lease's hosts leave the pool, lose their servers at its end, and come back": {2, wholeLife},
		"instances have flavor, room and server group as long as their lease":          {2, instanceLife},
		"floating IPs are made at the start and gone at the end":                       {0, addressLife},
		"a lease without reservations lives and ends":                                  {0, emptyLife},
		"what fails for a while only delays the start":                                 {1, hiccup},
		"a deletion wins over a start that hangs":                                      {1, deletedWhileStarting},
		"a deletion wins over an end that hangs":                                       {1, deletedWhileEnding},
		"an active lease grows in the cloud and is not shrunk":                         {3, growth},
		"an active reservation of floating IPs grows though Neutron stutters":          {0, addressGrowth},
		"what is wrong with a change never changes the lease":                          {2, wrongChanges},
	})
}

// TestLease_ShortRetryTimeout is the same where the cloud is not asked for long.
func TestLease_ShortRetryTimeout(t *testing.T) {
	t.Parallel()
	tellStories(t, newOvercast(t, "BERTH_LEASE_PATIENCE=4s"), map[string]story{
		"if one reservation fails, all are in error, and what had begun is cleared": {3, partialFailure},
		"one of three hosts that cannot be had costs nobody the others":             {3, oneOfThree},
		"a deletion that fails goes on until it is done":                            {1, deletionGoesOn},
		"servers that do not go leave the lease in error and its hosts to nobody":   {1, serversStay},
		"an end that hangs delays only who wants its host":                          {3, hangingEnd},
		"a snapshot that fails costs the event and nothing else":                    {1, failedSnapshot},
	})
}

type story struct {
	hosts int
	tell  func(*plot)
}

func tellStories(t *testing.T, o *overcast, all map[string]story) {
	t.Helper()
	o.StartWorker("relay,temporal")
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.tell(o.plot(t, s.hosts))
		})
	}
}

func wholeLife(p *plot) {
	l := p.lease(time.Hour, 3*time.Hour, servertest.Object{"resource_type": "physical:host", "min": 2, "max": 2, "hypervisor_properties": "",
		"resource_properties": p.mine(), "before_end": "snapshot"})
	l.settles("freepool:1,2")
	p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Name: "squatter"})
	l.begin()
	l.becomes("ACTIVE")
	l.settles("a:1,2")
	if n := p.servers(); n != 0 {
		p.Errorf("%d servers of others are on the hosts", n)
	}
	p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Name: p.name})
	p.Nova.AddServer(notifytest.Server{Host: p.hosts[1], Name: p.name, PollsUntilGone: 3})
	p.api.Must("PUT", l.path, servertest.Object{"before_end_date": second(10 * time.Second)})
	p.until("images are made", func() string {
		if images := p.Nova.ComputeState().Images; !slices.Contains(images, "reserved_"+p.name) {
			return fmt.Sprint(images)
		}
		return ""
	})
	l.event("before_end_lease", "DONE")
	p.api.Must("PUT", l.path, servertest.Object{"end_date": second(4 * time.Hour)})
	l.event("before_end_lease", "UNDONE") // it lies ahead again
	l.end()
	l.becomes("TERMINATED")
	if got := l.statuses(); got != "TERMINATED DONE DONE deleted" || p.servers() != 0 {
		p.Errorf("%s, %d servers", got, p.servers())
	}
	l.settles("freepool:1,2")
	p.refused(http.StatusBadRequest, "PUT", l.path, servertest.Object{"end_date": second(5 * time.Hour)})
	p.api.Must("PUT", l.path, servertest.Object{"name": "memory"})
	p.api.Must("DELETE", l.path, nil)
	l.gone()
}

// servers counts those on the plot's hosts.
func (p *plot) servers() (n int) {
	for _, s := range p.Nova.ComputeState().Servers {
		if slices.Contains(p.hosts, s.Host) {
			n++
		}
	}
	return n
}

func (p *plot) refused(code int, method, path string, body any) {
	p.T.Helper()
	if got, o, err := p.api.Do(method, path, body); got != code || err != nil {
		p.Errorf("%s %v: want %d, got %d %v %v", method, body, code, got, o, err)
	}
}

// event waits until the lease's event of that type has that status.
func (t *tenancy) event(typ, status string) {
	t.T.Helper()
	t.until(typ+" is "+status, func() string {
		for _, e := range t.now()["events"].([]any) {
			if e := e.(servertest.Object); e["event_type"] == typ && e["status"] != status {
				return fmt.Sprint("it is ", e["status"])
			}
		}
		return ""
	})
}

func instanceLife(p *plot) {
	l := p.lease(time.Hour, 2*time.Hour, p.instances(2, "False"))
	id := l.reservations[0]
	class := "CUSTOM_RESERVATION_" + strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
	l.begin()
	l.becomes("ACTIVE")
	l.settles("a:1,2 freepool:1,2")
	f, groups := p.of(id)
	if f == nil || len(f.Access) != 1 || f.Specs["resources:"+class] != "1" || f.Specs["affinity_id"] == "" || groups != 1 {
		p.Errorf("flavor %+v, %d server groups", f, groups)
	}
	want := []string{"blazar_" + p.hosts[0] + " 1 1", "blazar_" + p.hosts[1] + " 1 1"}
	stock := func() []string {
		return p.waiting().Rows(`
			select p.name || ' ' || i.total || ' ' || i.max_unit
			from inventory i join provider p on p.id = i.provider_id join resource_class c on c.id = i.class_id
			where c.name = $1
			order by p.name`, class)
	}
	if got := stock(); !slices.Equal(got, want) {
		p.Errorf("inventory has %v", got)
	}
	// Nova boots a server: it claims the room, and gives it back when the server is gone.
	server := p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Flavor: id, PollsUntilGone: 2})
	nested := p.waiting().Rows(`select uuid from provider where name = $1`, "blazar_"+p.hosts[0])[0]
	claim := func(of, n int) servertest.Object {
		o := servertest.Object{"allocations": servertest.Object{}, "project_id": "p", "user_id": "u", "consumer_generation": nil}
		if n > 0 {
			o["allocations"] = servertest.Object{nested: servertest.Object{"resources": servertest.Object{class: n}}}
		}
		if of > 0 {
			o["consumer_generation"] = of
		}
		return o
	}
	p.api.Must("PUT", "/placement/allocations/"+server.ID, claim(0, 1))
	p.refused(http.StatusConflict, "PUT", "/placement/allocations/"+uuid.NewString(), claim(0, 1))
	l.end()
	p.until("Nova was asked to delete the server", func() string { return map[bool]string{true: "it is there"}[p.servers() > 0] })
	p.api.Must("PUT", "/placement/allocations/"+server.ID, claim(1, 0))
	l.becomes("TERMINATED")
	if f, groups := p.of(id); f != nil || groups != 0 || len(stock()) != 0 {
		p.Errorf("left: %+v, %d groups, inventory %v", f, groups, stock())
	}
	if left := p.waiting().Rows(`select name from resource_class where name = $1`, class); len(left) != 0 {
		p.Error("the resource class is left")
	}
	l.settles("freepool:1,2")
}

// of is the flavor of a reservation, nil if it has none, and how many server groups it has.
func (p *plot) of(reservation string) (f *notifytest.Flavor, groups int) {
	now := p.Nova.ComputeState()
	if i := slices.IndexFunc(now.Flavors, func(f notifytest.Flavor) bool { return f.ID == reservation }); i >= 0 {
		f = &now.Flavors[i]
	}
	for _, g := range now.ServerGroups {
		if g.Name == "reservation:"+reservation {
			groups++
		}
	}
	return f, groups
}

// addresses registers floating IPs of a network of their own.
func (p *plot) addresses(all ...string) (network string) {
	p.T.Helper()
	network = p.api.Create("network", servertest.Object{"name": p.name})
	p.api.Create("subnet", servertest.Object{"network_id": network, "ip_version": 4, "cidr": "172.24.4.0/24",
		"allocation_pools": []servertest.Object{{"start": "172.24.4.100", "end": "172.24.4.200"}}})
	for _, a := range all {
		p.api.Must("POST", "/reservation/v1/floatingips", servertest.Object{"floating_network_id": network, "floating_ip_address": a})
	}
	return network
}

func (p *plot) floating(network string) string {
	var all []string
	for _, f := range p.neutron.FloatingIPs() {
		if f.Network == network {
			all = append(all, f.IP)
		}
	}
	return strings.Join(all, " ")
}

func addressLife(p *plot) {
	network := p.addresses("172.24.4.10", "172.24.4.11", "172.24.4.12")
	l := p.lease(time.Hour, 2*time.Hour, servertest.Object{"resource_type": "virtual:floatingip", "network_id": network, "amount": 2, "required_floatingips": []string{"172.24.4.12"}})
	l.begin()
	l.becomes("ACTIVE")
	if got := p.floating(network); got != "172.24.4.10 172.24.4.12" {
		p.Errorf("at Neutron: %s", got)
	}
	p.refused(http.StatusBadRequest, "PUT", l.path, servertest.Object{"reservations": []servertest.Object{{"id": l.reservations[0], "network_id": uuid.NewString()}}})
	port := "a port"
	p.neutron.PutFloatingIP(notifytest.FloatingIP{Network: network, IP: "172.24.4.12", Port: &port})
	l.end()
	l.becomes("TERMINATED")
	if got := p.floating(network); got != "" {
		p.Errorf("left at Neutron: %s", got)
	}
	p.lease(time.Hour, 2*time.Hour, servertest.Object{"resource_type": "virtual:floatingip", "network_id": network, "amount": 3})
}

func emptyLife(p *plot) {
	l := p.lease(20*time.Second, 22*time.Second)
	l.becomes("TERMINATED")
	if got := l.statuses(); got != "TERMINATED DONE DONE " {
		p.Error(got)
	}
}

func partialFailure(p *plot) {
	l := p.lease(time.Hour, 2*time.Hour, p.whole(2, 2), p.instances(1, nil))
	l.settles("freepool:1,2,3")
	p.refuse("POST", "reservation:"+l.reservations[1], http.StatusInternalServerError) // its flavor
	l.begin()
	l.becomes("ERROR")
	if got := l.statuses(); got != "ERROR ERROR UNDONE error error" {
		p.Error(got)
	}
	l.settles("freepool:1,2,3") // what had begun is cleared
	p.api.Must("PUT", l.path, servertest.Object{"name": "sorry"})
	if got := l.now()["status"]; got != "ERROR" {
		p.Errorf("a new name makes it %v", got)
	}
	p.refused(http.StatusConflict, "PUT", l.path, servertest.Object{"end_date": second(3 * time.Hour)})
	p.refused(http.StatusConflict, "POST", "/reservation/v1/leases", servertest.Object{"name": "next", "start_date": second(time.Hour), "end_date": second(90 * time.Minute),
		"reservations": []servertest.Object{p.whole(3, 3)}}) // until its end the hosts are its own
	p.api.Must("DELETE", l.path, nil)
	l.gone()
	p.lease(time.Hour, 2*time.Hour, p.whole(3, 3))
}

func hiccup(p *plot) {
	l := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
	l.settles("freepool:1")
	met, lift := p.refuse("POST", p.hosts[0], http.StatusInternalServerError)
	l.begin()
	p.until("Nova was asked in vain", func() string { return map[bool]string{true: "not yet"}[met() == 0] })
	lift()
	l.becomes("ACTIVE")
	if got := l.statuses(); got != "ACTIVE DONE UNDONE active" {
		p.Error(got)
	}
	l.settles("a:1")
}

func oneOfThree(p *plot) {
	p.refuse("GET", "host="+p.hosts[1], http.StatusInternalServerError) // its servers
	l := p.lease(20*time.Second, 27*time.Second, p.whole(3, 3))
	l.settled("ERROR ERROR ERROR error") // it failed to start and has ended
	l.settles("freepool:1,2,3")
	p.lease(time.Hour, 2*time.Hour, p.whole(3, 3)) // it holds nothing any more
}

// settled waits for the statuses of the lease, its events and its reservations.
func (t *tenancy) settled(want string) {
	t.T.Helper()
	t.until("the statuses are "+want, func() string {
		if got := t.statuses(); got != want {
			return "they are " + got
		}
		return ""
	})
}

func deletedWhileStarting(p *plot) {
	l := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
	l.settles("freepool:1")
	met, _ := p.refuse("POST", `"name":"`+l.reservations[0], http.StatusServiceUnavailable) // its aggregate
	l.begin()
	p.until("Nova was asked in vain", func() string { return map[bool]string{true: "not yet"}[met() < 2] })
	p.refused(http.StatusConflict, "PUT", l.path, servertest.Object{"end_date": second(3 * time.Hour)})
	for range 2 {
		if code, _, err := p.api.Do("DELETE", l.path, nil); code != http.StatusNoContent && code != http.StatusAccepted && code != http.StatusNotFound {
			p.Errorf("%d %v", code, err)
		}
	}
	l.gone()
	l.settles("freepool:1")
	p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
}

// endsWithAServer is a lease of one host that ends while Nova does not let a server go.
func (p *plot) endsWithAServer() (l *tenancy, lift func()) {
	l = p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
	l.begin()
	l.becomes("ACTIVE")
	server := p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Name: p.name})
	_, lift = p.refuse("DELETE", "/servers/"+server.ID, http.StatusConflict)
	l.end()
	return l, lift
}

func deletedWhileEnding(p *plot) {
	l, lift := p.endsWithAServer()
	l.becomes("TERMINATING")
	if code, o, err := p.api.Do("DELETE", l.path, nil); code != http.StatusNoContent && code != http.StatusAccepted {
		p.Errorf("%d %v %v", code, o, err)
	}
	l.becomes("DELETING")
	lift()
	l.gone()
	l.settles("freepool:1")
	if n := p.servers(); n != 0 {
		p.Errorf("%d servers are left", n)
	}
}

func deletionGoesOn(p *plot) {
	l := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
	l.begin()
	l.becomes("ACTIVE")
	p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Name: p.name})
	met, lift := p.refuse("GET", "host="+p.hosts[0], http.StatusInternalServerError)
	code, _, _ := p.api.Do("DELETE", l.path, nil)
	p.until("Nova was asked for longer than the lease is patient", func() string { return map[bool]string{true: "not yet"}[met() < 6] })
	if now := l.now(); code != http.StatusAccepted || now["status"] != "DELETING" {
		p.Errorf("answered %d, is %v", code, now["status"])
	}
	p.refused(http.StatusConflict, "PUT", l.path, servertest.Object{"name": "too late"})
	lift()
	l.gone()
	l.settles("freepool:1")
	p.refused(http.StatusNotFound, "DELETE", l.path, nil)
}

func serversStay(p *plot) {
	l, lift := p.endsWithAServer()
	l.becomes("ERROR")
	if got := l.statuses(); got != "ERROR DONE ERROR error" {
		p.Error(got)
	}
	p.refused(http.StatusConflict, "POST", "/reservation/v1/leases", servertest.Object{"name": "next", "start_date": second(time.Hour), "end_date": second(2 * time.Hour),
		"reservations": []servertest.Object{p.whole(1, 1)}})
	l.settles("a:1")
	lift()
	p.api.Must("DELETE", l.path, nil)
	l.gone()
	l.settles("freepool:1")
	p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
}

func hangingEnd(p *plot) {
	a := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
	a.begin()
	a.becomes("ACTIVE")
	p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Name: p.name, PollsUntilGone: 1 << 20})
	others := []*tenancy{p.lease(time.Hour, 2*time.Hour, p.whole(1, 1)), p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))}
	next := p.lease(2*time.Hour, 3*time.Hour, servertest.Object{"resource_type": "physical:host", "min": 1, "max": 1, "resource_properties": p.mine(),
		"hypervisor_properties": `["=","$hypervisor_hostname","` + p.hosts[0] + `"]`})
	a.end()
	a.until("its end has begun", func() string { return map[bool]string{true: "not yet"}[a.now()["status"] == "ACTIVE"] })
	for _, l := range others {
		l.begin()
		l.becomes("ACTIVE")
	}
	next.begin()
	next.waits(a)
	a.becomes("ERROR") // its patience is over: the follower still waits, for its deletion
	next.waits(a)
	p.Nova.RemoveServers(p.hosts[0])
	p.api.Must("DELETE", a.path, nil)
	next.becomes("ACTIVE")
}

// waits waits until the lease says that it waits for another.
func (t *tenancy) waits(other *tenancy) {
	t.T.Helper()
	t.until("the lease waits for the other", func() string {
		now := t.now()
		if now["status"] != "PENDING" || !strings.Contains(fmt.Sprint(now["berth:why"]), "lease/"+other.id) {
			return fmt.Sprint(now["status"], now["berth:why"])
		}
		return ""
	})
}

func failedSnapshot(p *plot) {
	l := p.lease(time.Hour, 3*time.Hour, servertest.Object{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "",
		"resource_properties": p.mine(), "before_end": "snapshot"})
	l.begin()
	l.becomes("ACTIVE")
	server := p.Nova.AddServer(notifytest.Server{Host: p.hosts[0], Name: p.name})
	p.refuse("POST", "/servers/"+server.ID, http.StatusBadRequest)
	p.api.Must("PUT", l.path, servertest.Object{"before_end_date": second(10 * time.Second)})
	l.event("before_end_lease", "ERROR")
	if got := l.statuses(); got != "ACTIVE DONE UNDONE active" {
		p.Error(got)
	}
	p.api.Must("PUT", l.path, servertest.Object{"end_date": second(4 * time.Hour)})
	l.end()
	l.settled("TERMINATED DONE DONE deleted")
}

func growth(p *plot) {
	whole := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1))
	whole.begin()
	whole.becomes("ACTIVE")
	p.api.Must("PUT", whole.path, servertest.Object{"reservations": []servertest.Object{{"id": whole.reservations[0], "min": 1, "max": 2}}})
	whole.settles("a:1,2 freepool:3")
	p.refused(http.StatusConflict, "PUT", whole.path, servertest.Object{"reservations": []servertest.Object{{"id": whole.reservations[0], "min": 1, "max": 1}}})

	some := p.lease(time.Hour, 2*time.Hour, p.instances(1, nil))
	some.begin()
	some.becomes("ACTIVE")
	p.refused(http.StatusConflict, "PUT", some.path, servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 5}}})
	p.api.Must("PUT", some.path, servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 4}}})
	p.refused(http.StatusConflict, "PUT", some.path, servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 3}}})
	p.refused(http.StatusConflict, "PUT", some.path, servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "vcpus": 1}}})
	if got := some.statuses(); got != "ACTIVE DONE UNDONE active" {
		p.Error(got)
	}
	whole.end()
	whole.becomes("TERMINATED")
	p.api.Must("PUT", some.path, servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 6}}})
	some.until("Nova has as many hosts as the reservation", func() string {
		if got := some.cloud(); !strings.HasPrefix(got, "a:1,3") && !strings.HasPrefix(got, "a:2,3") {
			return got
		}
		return ""
	})
	p.api.Must("DELETE", some.path, nil)
	some.gone()
	some.settles("freepool:1,2,3")
}

func addressGrowth(p *plot) {
	network := p.addresses("172.24.4.10", "172.24.4.11", "172.24.4.12")
	l := p.lease(time.Hour, 2*time.Hour, servertest.Object{"resource_type": "virtual:floatingip", "network_id": network, "amount": 1})
	l.begin()
	l.becomes("ACTIVE")
	met, lift := p.refuse("POST", network, http.StatusInternalServerError)
	p.api.Must("PUT", l.path, servertest.Object{"reservations": []servertest.Object{{"id": l.reservations[0], "amount": 3}}})
	p.until("Neutron was asked in vain", func() string { return map[bool]string{true: "not yet"}[met() < 2] })
	lift()
	p.until("Neutron has all", func() string {
		return map[bool]string{true: p.floating(network)}[len(strings.Fields(p.floating(network))) < 3]
	})
	if got := l.statuses(); got != "ACTIVE DONE UNDONE active" {
		p.Error(got)
	}
	p.refused(http.StatusBadRequest, "PUT", l.path, servertest.Object{"reservations": []servertest.Object{{"id": l.reservations[0], "amount": 2}}})
	p.api.Must("DELETE", l.path, nil)
	l.gone()
	if got := p.floating(network); got != "" {
		p.Errorf("left at Neutron: %s", got)
	}
}

// wrongChanges sends what is wrong to a pending, an active and an ended lease.
func wrongChanges(p *plot) {
	pending, active := p.lease(time.Hour, 2*time.Hour, p.whole(1, 1)), p.lease(time.Hour, 3*time.Hour, p.whole(1, 1))
	active.begin()
	active.becomes("ACTIVE")
	reservation := func(l *tenancy, more servertest.Object) servertest.Object {
		o := servertest.Object{"id": l.reservations[0]}
		for k, v := range more {
			o[k] = v
		}
		return servertest.Object{"name": "changed", "reservations": []servertest.Object{o}}
	}
	for _, l := range []*tenancy{pending, active} {
		was := p.waiting().Rows(`select l::text || (select string_agg(e::text, ' ' order by e.id) from event e where e.lease_id = l.id)
			|| (select string_agg(r::text, ' ') from reservation r where r.lease_id = l.id) from lease l where id = $1`, l.id)
		for _, c := range []struct {
			code int
			body servertest.Object
		}{
			{400, servertest.Object{"end_date": "2040-13-01 10:00"}}, {400, servertest.Object{"end_date": second(-time.Hour)}}, {400, servertest.Object{"start_date": second(-time.Hour)}},
			{400, servertest.Object{"start_date": second(4 * time.Hour)}}, {400, servertest.Object{"end_date": 7}}, {400, servertest.Object{"name": ""}}, {400, servertest.Object{"name": nil}},
			{400, servertest.Object{"name": strings.Repeat("x", 81)}}, {403, servertest.Object{"before_end_date": second(9 * time.Hour)}}, {403, servertest.Object{"before_end_date": second(-time.Hour)}},
			{400, servertest.Object{"before_end_date": "now"}}, {400, servertest.Object{"project_id": "mine"}}, {400, servertest.Object{"status": "ACTIVE"}}, {400, servertest.Object{"degraded": true}},
			{400, servertest.Object{"reservations": []servertest.Object{{}}}}, {400, servertest.Object{"reservations": []servertest.Object{{"id": uuid.NewString(), "max": 1}}}},
			{409, reservation(l, servertest.Object{"resource_type": "virtual:instance"})}, {409, reservation(l, servertest.Object{"resource_type": "virtual:fridge"})},
			{400, reservation(l, servertest.Object{"min": 0})}, {400, reservation(l, servertest.Object{"min": 2, "max": 1})}, {400, reservation(l, servertest.Object{"max": "many"})},
			{409, reservation(l, servertest.Object{"min": 3, "max": 3})}, {400, reservation(l, servertest.Object{"resource_properties": `["or",1]`})},
			{400, reservation(l, servertest.Object{"hypervisor_properties": `["=","$nobody_has_this","1"]`})}, {400, reservation(l, servertest.Object{"before_end": "email"})},
			{400, servertest.Object{"reservations": "none"}},
		} {
			p.refused(c.code, "PUT", l.path, c.body)
		}
		is := p.waiting().Rows(`select l::text || (select string_agg(e::text, ' ' order by e.id) from event e where e.lease_id = l.id)
			|| (select string_agg(r::text, ' ') from reservation r where r.lease_id = l.id) from lease l where id = $1`, l.id)
		if !slices.Equal(was, is) {
			p.Errorf("it was\n%v and is\n%v", was, is)
		}
	}
}
