package leasestore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// fixture is a test with a store that has registered hosts.
type fixture struct {
	*testing.T
	*store.Store
	url   string
	hosts []lease.Host
}

// withT returns the fixture for a subtest.
func (t *fixture) withT(sub *testing.T) *fixture {
	f := *t
	f.T = sub
	return &f
}

func newFixture(t *testing.T, hosts int) *fixture {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	l := &fixture{T: t, Store: s, url: url}
	for i := range hosts {
		l.register(fmt.Sprintf("cmp-%d", i+1), nil)
	}
	return l
}

func (t *fixture) register(name string, capabilities map[string]string) lease.Host {
	t.Helper()
	storetest.AddHost(t.T, t.Store, name, map[string]inventory.Inventory{
		"VCPU":      inventory.NewInventory(8),
		"MEMORY_MB": inventory.NewInventory(1024),
		"DISK_GB":   inventory.NewInventory(20),
	})
	h, err := t.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: name}, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	t.hosts = append(t.hosts, h)
	return h
}

// hour returns the start of the current hour plus n+1 hours.
func hour(n int) time.Time {
	return time.Now().UTC().Truncate(time.Hour).Add(time.Duration(n+1) * time.Hour)
}

// hostsDraft returns the draft of a lease from hour(from) to hour(to); the minimum number of hosts is
// `least`, and the maximum number is `most`.
func hostsDraft(from, to, least, most int) lease.Draft {
	d := lease.Draft{
		Name:         "l",
		User:         "u",
		Project:      "p",
		Start:        lease.RequestedDate{At: hour(from)},
		End:          lease.RequestedDate{At: hour(to)},
		Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: least, Max: most}},
	}
	return d
}

func (t *fixture) createLease(d lease.Draft) lease.Lease {
	t.Helper()
	l, err := t.Lease.CreateLease(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (t *fixture) expectCreateFault(d lease.Draft, kind lease.Kind) {
	t.Helper()
	before := t.countRows()
	if _, err := t.Lease.CreateLease(t.Context(), d); faultKind(err) != kind {
		t.Errorf("create a lease: want a fault of kind %q, got %v", kind, err)
	}
	if after := t.countRows(); before != after {
		t.Errorf("rows after a refused creation of a lease: got %s, want the same as before: %s",
			after, before)
	}
}

// makeDue sets the dates of a lease and of the lease's events to times in the past.
func (t *fixture) makeDue(l lease.Lease) {
	t.Helper()
	storetest.Exec(
		t,
		t.url,
		`update lease set start_at = now() - interval '2 hours', end_at = now() - interval '1 hour' where id = $1`,
		l.ID,
	)
	storetest.Exec(t, t.url, `update event set at = now() - interval '1 hour' where lease_id = $1`, l.ID)
	storetest.Exec(t, t.url, `
		update host_allocation set during = tstzrange(now() - interval '2 hours', now() - interval '1 hour')
		where reservation_id in (select id from reservation where lease_id = $1)`, l.ID)
}

// readLease reads a lease, and checks with lease.CheckStatus that the statuses of the lease, its reservations
// and its events are consistent.
func (t *fixture) readLease(id uuid.UUID) lease.Lease {
	t.Helper()
	l, err := t.Lease.Lease(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.CheckStatus(l); err != nil {
		t.Errorf("check the statuses of a lease: got error %v, want none", err)
	}
	return l
}

func (t *fixture) beginStep(id uuid.UUID, step lease.Step) lease.Lease {
	t.Helper()
	if _, err := t.Lease.BeginLease(t.Context(), id, step); err != nil {
		t.Fatal(err)
	}
	return t.readLease(id)
}

func (t *fixture) finishStep(id uuid.UUID, step lease.Step, failed map[uuid.UUID]string) lease.Lease {
	t.Helper()
	if _, err := t.Lease.FinishLease(t.Context(), id, step, failed); err != nil {
		t.Fatal(err)
	}
	return t.readLease(id)
}

func (t *fixture) addToInventory(l lease.Lease) {
	t.Helper()
	for _, r := range l.Reservations {
		if err := t.Lease.AddToInventory(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func (t *fixture) release(l lease.Lease) {
	t.Helper()
	for _, r := range l.Reservations {
		if err := t.Lease.ReleaseReservation(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// createActive creates a lease, makes the events of the lease due, and starts the lease.
func (t *fixture) createActive(d lease.Draft) lease.Lease {
	t.Helper()
	l := t.createLease(d)
	t.makeDue(l)
	t.beginStep(l.ID, lease.StepStart)
	t.addToInventory(l)
	return t.finishStep(l.ID, lease.StepStart, nil)
}

// inventoryHosts returns the names of the hosts from which a reservation has allocations in Placement.
func (t *fixture) inventoryHosts(reservation uuid.UUID) []string {
	t.Helper()
	var names []string
	for provider, resources := range storetest.Allocations(t.T, t.Store, reservation.String()).Allocations {
		if resources[lease.HostResourceClass] != 1 {
			t.Errorf(
				"allocation of a reservation in Placement: got %v from the provider %s, want one unit of the host resource class",
				resources,
				provider,
			)
		}
		for _, h := range t.hosts {
			if h.NestedProvider.String() == provider {
				names = append(names, h.Hostname)
			}
		}
	}
	slices.Sort(names)
	return names
}

// countRows returns, as text, the numbers of rows in all tables that writes of leases change.
func (t *fixture) countRows() string {
	t.Helper()
	var leases, reservations, events, hosts, consumers, notes int
	err := storetest.Connect(t, t.url).QueryRow(t.Context(), `
		select (select count(*) from lease), (select count(*) from reservation), (select count(*) from event),
			(select count(*) from host_allocation), (select count(*) from consumer), (select count(*) from note)`).
		Scan(&leases, &reservations, &events, &hosts, &consumers, &notes)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("leases %d, reservations %d, events %d, host allocations %d, consumers %d, notes %d",
		leases, reservations, events, hosts, consumers, notes)
}

func faultKind(err error) lease.Kind {
	var f *lease.Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}

func TestLease_StepsRepeatWithoutEffect(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(hostsDraft(1, 2, 2, 2))
	id, r := l.ID, l.Reservations[0].ID
	if err := lease.CheckStatus(l); err != nil || l.Status != lease.Pending ||
		len(l.Reservations[0].Hosts) != 2 {
		t.Fatalf(
			"create a lease with two hosts: got %+v, error of CheckStatus %v; want PENDING with two hosts and no error",
			l,
			err,
		)
	}
	if _, err := e.Lease.BeginLease(t.Context(), id, lease.StepStart); !errors.Is(err, db.ErrConflict) {
		t.Errorf("begin the start of a lease before its start date: got error %v, want ErrConflict", err)
	}
	if err := e.Lease.AddToInventory(t.Context(), r); !errors.Is(err, db.ErrConflict) {
		t.Errorf("add a reservation to Placement before its start date: got error %v, want ErrConflict", err)
	}
	e.makeDue(l)

	for range 2 { // repeated after a crash
		if got := e.beginStep(id, lease.StepStart); got.Status != lease.Starting {
			t.Fatalf("begin the start of a lease: got status %s, want STARTING", got.Status)
		}
	}
	if _, err := e.Lease.FinishLease(t.Context(), id, lease.StepStart, nil); !errors.Is(err, db.ErrConflict) {
		t.Errorf(
			"finish the start of a lease without its hosts in Placement: got error %v, want ErrConflict",
			err,
		)
	}
	for range 2 {
		e.addToInventory(l)
	}
	if d := cmp.Diff([]string{"cmp-1", "cmp-2"}, e.inventoryHosts(r)); d != "" {
		t.Error(d)
	}
	if g := storetest.Allocations(t, e.Store, r.String()); g.Generation != 1 || g.Project != "p" ||
		g.User != "u" {
		t.Errorf(
			"consumer after a repeated AddToInventory: got %+v, want generation 1, project p and user u",
			g,
		)
	}
	for range 2 {
		if got := e.finishStep(id, lease.StepStart, nil); got.Status != lease.Active {
			t.Fatalf("finish the start of a lease: got status %s, want ACTIVE", got.Status)
		}
	}
	e.addToInventory(l) // a late repetition

	for range 2 {
		e.beginStep(id, lease.StepBeforeEnd)
	}
	for range 2 {
		e.finishStep(id, lease.StepBeforeEnd, nil)
	}

	if err := e.Lease.ReleaseReservation(t.Context(), r); !errors.Is(err, db.ErrConflict) {
		t.Errorf("remove the hosts of an active lease from Placement: got error %v, want ErrConflict", err)
	}
	for range 2 {
		if got := e.beginStep(id, lease.StepEnd); got.Status != lease.Terminating {
			t.Fatalf("begin the end of a lease: got status %s, want TERMINATING", got.Status)
		}
	}
	if _, err := e.Lease.FinishLease(t.Context(), id, lease.StepStart, nil); !errors.Is(err, db.ErrConflict) {
		t.Errorf("finish the start of a lease that is ending: got error %v, want ErrConflict", err)
	}
	if err := e.Lease.AddToInventory(t.Context(), r); !errors.Is(err, db.ErrConflict) {
		t.Errorf("add the reservation of an ending lease to Placement: got error %v, want ErrConflict", err)
	}
	for range 2 {
		e.release(l)
	}
	if got := e.inventoryHosts(r); len(got) != 0 {
		t.Errorf("hosts of the reservation in Placement after ReleaseReservation: got %v, want none", got)
	}
	if got := e.readLease(id); got.Status != lease.Terminating || len(got.Reservations[0].Hosts) != 0 {
		t.Errorf("lease after the release of its reservation: got %+v, want TERMINATING without hosts", got)
	}
	for range 2 {
		if got := e.finishStep(id, lease.StepEnd, nil); got.Status != lease.Terminated ||
			len(got.Reservations[0].Hosts) != 0 {
			t.Fatalf("finish the end of a lease: got %+v, want TERMINATED without hosts", got)
		}
	}
}

func TestLease_FailedCreateLeavesNoRows(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	second := hostsDraft(1, 2, 1, 1)
	second.Reservations = append(second.Reservations,
		lease.ReservationDraft{Type: lease.PhysicalHost, Min: 2, Max: 2})
	e.expectCreateFault(second, lease.NotEnoughHosts)
	past := hostsDraft(-48, 2, 1, 1)
	e.expectCreateFault(past, lease.InvalidInput)
	unknown := hostsDraft(1, 2, 1, 1)
	unknown.Reservations[0].HypervisorProperties = `["=","$gpo","x"]`
	e.expectCreateFault(unknown, lease.MalformedRequirements)
	unnamed := hostsDraft(1, 2, 1, 1)
	unnamed.Name = ""
	e.expectCreateFault(unnamed, lease.InvalidInput)
}

func TestLease_AllocatesHostsThatMeetTheRequirements(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.register("gpu-1", map[string]string{"gpu": "True", "count": "10"})
	d := hostsDraft(1, 2, 1, 2)
	d.Reservations[0].HypervisorProperties = `[">=","$vcpus","8"]`
	d.Reservations[0].ResourceProperties = `["and",["=","$gpu","True"],[">=","$count","9"]]`
	l := e.createLease(d)
	if d := cmp.Diff([]int64{e.hosts[1].ID}, l.Reservations[0].Hosts); d != "" {
		t.Error(d)
	}
	_, err := e.Lease.UpdateHost(t.Context(), e.hosts[1].ID, map[string]string{"gpu": "False"})
	if faultKind(err) != lease.HostInUse {
		t.Errorf(
			"change a capability that a reservation requires: got error %v, want a fault of kind HostInUse",
			err,
		)
	}
	h, err := e.Lease.UpdateHost(t.Context(), e.hosts[1].ID, map[string]string{"rack": "7", "gpu": "True"})
	if err != nil || h.Capabilities["rack"] != "7" {
		t.Errorf("add a capability to a reserved host: got %+v, error %v; want the capability rack=7", h, err)
	}
}

func TestLease_CreateNudgesTheLeaseWorkflow(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	notes, err := e.Outbox.Claim(t.Context(), "", 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := contract.Nudge{
		Workflow:   contract.Lease,
		ID:         contract.LeaseID(l.ID.String()),
		NotRunning: true,
		Summary:    "l",
		Attributes: contract.Attributes{Status: "PENDING", Project: "p", Resource: "lease"},
	}
	if len(notes) != 1 {
		t.Fatalf("notes after the creation of a lease: got %+v, want one", notes)
	}
	if d := cmp.Diff(want, notes[0].Nudge); d != "" {
		t.Error(d)
	}
}
