package leasestore_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// applyFunc is a function that a test uses in place of the calls to Nova and Neutron. An applyFunc returns
// the steps whose calls to Nova and Neutron succeed.
type applyFunc func([]leasestore.StartedStep) []leasestore.StartedStep

// roundResult is the result of one round that advances due leases.
type roundResult struct {
	begun, finished int
	abandoned       []uuid.UUID // IDs of the leases whose step was ready, but whose start was abandoned
}

// advanceOnce begins due steps, calls `apply`, and finishes the steps that `apply` returns. If the function
// `apply` is nil, advanceOnce finishes all steps that are ready.
func (t *fixture) advanceOnce(apply applyFunc) (r roundResult, err error) {
	started, ready, err := t.Lease.BeginDueLeases(t.Context(), apply != nil)
	if err != nil || len(started) == 0 {
		return r, err
	}
	applied := ready
	if apply != nil && len(ready) > 0 {
		applied = apply(ready)
	}
	finished, abandoned, err := t.Lease.FinishStartedLeases(t.Context(), started, applied)
	for _, step := range ready {
		if abandoned[step.ID] {
			r.abandoned = append(r.abandoned, step.ID)
		}
	}
	r.begun, r.finished = len(started), finished
	return r, err
}

// advanceAll runs rounds until no lease is due. The result of advanceAll is the number of finished steps.
func (t *fixture) advanceAll(apply applyFunc) (finished int, err error) {
	for {
		r, err := t.advanceOnce(apply)
		finished += r.finished
		if r.begun == 0 || err != nil {
			return finished, err
		}
	}
}

// advance runs the rounds without calls to Nova and Neutron, and expects `want` finished steps.
func (t *fixture) advance(want int) {
	t.Helper()
	if n, err := t.advanceAll(nil); n != want || err != nil {
		t.Errorf("number of steps that the rounds finished: got %d, want %d; error %v", n, want, err)
	}
}

// startDue changes the dates of a lease so that its start is due and its end is in one hour.
func (t *fixture) startDue(l lease.Lease) {
	t.Helper()
	t.makeDue(l)
	storetest.Exec(
		t,
		t.url,
		`update event set at = now() + interval '1 hour' where lease_id = $1 and event_type <> 'start_lease'`,
		l.ID,
	)
}

func (t *fixture) expectStatus(l lease.Lease, want lease.Status) {
	t.Helper()
	if got := t.readLease(l.ID).Status; got != want {
		t.Errorf("status of the lease %q: got %s, want %s", l.Name, got, want)
	}
}

func TestLeaseAdvance_SweepFinishesEndsBeforeStarts(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 4)
	named := func(name string, d lease.Draft) lease.Draft { d.Name = name; return d }
	ending := e.createActive(named("ending", hostsDraft(1, 2, 1, 1)))
	e.beginStep(ending.ID, lease.StepBeforeEnd)
	e.finishStep(ending.ID, lease.StepBeforeEnd, nil)
	starting := e.createLease(named("starting", hostsDraft(1, 2, 2, 2)))
	withoutReservations := lease.Draft{
		User:    "u",
		Project: "p",
		Start:   lease.RequestedDate{At: hour(1)},
		End:     lease.RequestedDate{At: hour(2)},
	}
	empty := e.createLease(named("empty", withoutReservations))
	next := e.createLease(named("next", hostsDraft(3, 4, 4, 4)))
	later := e.createLease(named("later", hostsDraft(5, 6, 1, 1)))
	deleted := e.createLease(named("deleted", withoutReservations))
	for _, l := range []lease.Lease{starting, empty, deleted} {
		e.startDue(l)
	}
	const startNow = `update event set at = now() where lease_id = $1 and event_type = 'start_lease'`
	storetest.Exec(t, e.url, startNow, next.ID)
	storetest.Exec(t, e.url, `update lease set delete_requested_at = now() where id = $1`, deleted.ID)

	e.advance(3)

	e.expectStatus(ending, lease.Terminated)
	e.expectStatus(starting, lease.Active)
	e.expectStatus(empty, lease.Active)
	e.expectStatus(next, lease.Pending) // the lease `starting` has two of the hosts
	e.expectStatus(later, lease.Pending)
	e.expectStatus(deleted, lease.Pending)
	if got := e.inventoryHosts(starting.Reservations[0].ID); len(got) != 2 {
		t.Errorf("hosts of an ACTIVE lease in Placement: got %v, want two", got)
	}
	for _, l := range []lease.Lease{starting, empty} {
		e.makeDue(l) // their before_end events too
	}

	e.advance(5)

	for _, l := range []lease.Lease{starting, empty} {
		if warning := eventOf(e.readLease(l.ID), lease.BeforeEndLease); warning.Status != lease.EventDone {
			t.Errorf("before_end_lease event of the lease %q: got status %s, want DONE",
				l.Name, warning.Status)
		}
	}

	e.expectStatus(starting, lease.Terminated)
	e.expectStatus(next, lease.Active) // the round that has ended `starting` has also started `next`
	e.advance(0)
}

// If more leases are due than one round begins, ends of leases have priority over starts, and deletions do
// not delay other leases.
func TestLeaseAdvance_ManyDueLeasesDelayNoOtherLease(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	const crowd = 51
	for range crowd {
		e.createLease(lease.Draft{
			Name:    "crowd",
			User:    "u",
			Project: "p",
			Start:   lease.RequestedDate{At: hour(1)},
			End:     lease.RequestedDate{At: hour(2)},
		})
	}
	due := func(typ lease.EventType) {
		t.Helper()
		storetest.Exec(t, e.url, `
			update event
			set at = now() - interval '2 hours'
			where event_type = $1 and lease_id in (select id from lease where name = 'crowd')`, typ)
	}
	once := func() {
		t.Helper()
		if got, err := e.advanceOnce(nil); got.begun == 0 || got.finished != got.begun || err != nil {
			t.Errorf(
				"one round: got %d begun and %d finished steps, error %v; want every begun step finished",
				got.begun, got.finished, err,
			)
		}
	}
	due(lease.StartLease)
	ending := e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(ending.ID, lease.StepBeforeEnd)
	e.finishStep(ending.ID, lease.StepBeforeEnd, nil)

	once()

	e.expectStatus(ending, lease.Terminated) // an end releases hosts and has priority over older starts
	once()
	due(lease.BeforeEndLease)
	due(lease.EndLease)
	storetest.Exec(t, e.url, `update lease set delete_requested_at = now() where name = 'crowd'`)
	starting := e.createLease(hostsDraft(1, 2, 1, 1))
	e.startDue(starting)

	once()

	e.expectStatus(starting, lease.Active) // the workflows of the deleted leases execute the deletions
}

// The projects take turns, so that a project with more due ends than one round takes delays no start of
// another project.
func TestLeaseAdvance_DueLeasesOfAProjectDelayNoOther(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	storetest.Exec(t, e.url, `
		with crowd as (
			insert into lease (id, name, user_id, project_id, status, start_at, end_at)
			select gen_random_uuid(), 'crowd', 'u', 'noisy', 'ACTIVE', now() - interval '2 hours', now() - interval '1 hour'
			from generate_series(1, 60)
			returning id)
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), id, typ, now() - interval '1 hour', status
		from crowd, (values ('start_lease', 'DONE'), ('end_lease', 'UNDONE')) as e (typ, status)`)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	e.startDue(l)
	if got, err := e.advanceOnce(nil); got.begun != 50 || got.finished != 50 || err != nil {
		t.Errorf("one round: got %d begun and %d finished steps, error %v; want 50", got.begun, got.finished, err)
	}
	e.expectStatus(l, lease.Active)
	e.advance(11)
}

// Blocked leases, of which there are more than one query examines, delay no later lease of their project.
func TestLeaseAdvance_ManyBlockedLeasesDelayNoOther(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	stuck, free := e.createActive(onHost(1, 2, "cmp-1")), e.createLease(onHost(3, 4, "cmp-2"))
	e.setDates(stuck, -3*time.Hour, -2*time.Hour)
	e.setDates(free, -time.Minute, time.Hour)
	e.failEnd(stuck)
	storetest.ExecScript(t, e.url, `
		set local session_replication_role = replica;
		insert into lease (id, name, user_id, project_id, status, start_at, end_at)
		select md5(n::text)::uuid, 'blocked', 'u', 'p', 'PENDING', now() - interval '1 hour', now() + interval '1 hour'
		from generate_series(1, 250) n;
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), id, typ, at, 'UNDONE'
		from lease, lateral (values ('start_lease', start_at), ('end_lease', end_at)) as e (typ, at)
		where name = 'blocked';
		insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties,
			resource_properties, before_end, resources)
		select id, id, 0, 'virtual:instance', 'pending', 0, 0, '', '', 'default', '{"VCPU": 1}' from lease where name = 'blocked';
		insert into host_allocation (reservation_id, host_id, during)
		select id, 1, tstzrange(start_at, end_at) from lease where name = 'blocked'`)

	e.advance(1)

	e.expectStatus(free, lease.Active)
}

// A round reads the due events, and none of past or future leases.
func TestLeaseAdvance_ReadsOnlyDueLeases(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, `
		set local session_replication_role = replica;
		insert into lease (id, name, user_id, project_id, status, start_at, end_at)
		select gen_random_uuid(), 'l', 'u', 'p' || n % 9, case when n < 20000 then 'TERMINATED' else 'PENDING' end,
			now() + (n - 20100) * interval '1 hour', now() + (n - 20000) * interval '1 hour'
		from generate_series(1, 22000) n;
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), id, typ, at, case status when 'PENDING' then 'UNDONE' else 'DONE' end
		from lease, lateral (values ('start_lease', start_at), ('end_lease', end_at)) as e (typ, at)`)
	storetest.FixPlans(t, url)
	rows, err := storetest.Connect(t, url).Query(t.Context(), `explain `+leasestore.DueLeasesSQL)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if scan := regexp.MustCompile(`Seq Scan on (lease|event)`).FindString(plan); scan != "" || !strings.Contains(plan, "event_due") {
		t.Errorf("plan: got %q, want the index event_due:\n%s", scan, plan)
	}
}

func TestLeaseAdvance_FailedStepDelaysNoOtherLease(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	var all []lease.Lease
	for range 3 {
		all = append(all, e.createLease(hostsDraft(1, 2, 1, 1)))
	}
	other := inventory.ConsumerWrite{
		Consumer: uuid.NewString(),
		Project:  "p",
		User:     "u",
		Expect:   inventory.ExpectAbsent(),
		Allocations: inventory.Allocations{
			e.hosts[all[1].Reservations[0].Hosts[0]-1].NestedProvider.String(): {lease.HostResourceClass: 1},
		},
	}
	if err := e.Inventory.ReplaceAllocations(t.Context(), []inventory.ConsumerWrite{other}); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		e.startDue(l)
	}

	e.advance(2)

	e.expectStatus(all[0], lease.Active)
	e.expectStatus(all[1], lease.Starting) // the workflow of the lease retries the step
	e.expectStatus(all[2], lease.Active)
	e.advance(0)
}

func TestLeaseAdvance_FailedCloudCallIsLeftToTheLeaseWorkflow(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	var all []lease.Lease
	for range 3 {
		all = append(all, e.createLease(hostsDraft(1, 2, 1, 1)))
		e.startDue(all[len(all)-1])
	}
	storetest.Exec(t, e.url, `delete from note`)

	n, err := e.advanceAll(func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for _, b := range begun {
			if b.Step != lease.StepStart || b.Status != lease.Starting {
				t.Errorf(
					"step that is passed to the calls to Nova and Neutron: got step %s of a lease in %s, want start of a lease in STARTING",
					b.Step,
					b.Status,
				)
			}
			e.expectStatus(b.Lease, lease.Starting) // committed before the calls
		}
		return slices.DeleteFunc(slices.Clone(begun),
			func(b leasestore.StartedStep) bool { return b.ID == all[2].ID })
	})

	if n != 2 || err != nil {
		t.Errorf(
			"steps finished by a round in which one of three cloud calls fails: got %d, error %v; want 2",
			n,
			err,
		)
	}
	e.expectStatus(all[0], lease.Active)
	e.expectStatus(all[1], lease.Active)
	e.expectStatus(all[2], lease.Starting)
	rows, err := storetest.Connect(t, e.url).Query(t.Context(), `select workflow_id from note`)
	if err != nil {
		t.Fatal(err)
	}
	nudged, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if d := cmp.Diff([]string{"lease/" + all[2].ID.String()}, nudged); d != "" || err != nil {
		t.Errorf("workflows nudged after one cloud call failed (-want +got):\n%s\nerror: %v", d, err)
	}
	e.advance(0)
}

func TestLeaseAdvance_DeletionDuringCloudCallsAbandonsTheStart(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 4)
	started := e.createLease(hostsDraft(1, 2, 1, 1))
	asked := e.createLease(hostsDraft(1, 2, 1, 1))
	gone := e.createLease(hostsDraft(1, 2, 1, 1))
	ending := e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(ending.ID, lease.StepBeforeEnd)
	e.finishStep(ending.ID, lease.StepBeforeEnd, nil)
	for _, l := range []lease.Lease{started, asked, gone} {
		e.startDue(l)
	}
	apply := func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for _, l := range []lease.Lease{asked, gone, ending} {
			if there, err := e.Lease.DeleteLease(t.Context(), l.ID); there || err != nil {
				t.Errorf(
					"delete a lease during its step: got gone %t, error %v; want false and no error",
					there,
					err,
				)
			}
		}
		e.beginStep(gone.ID, lease.StepDelete)
		if _, err := e.Lease.FinishLease(t.Context(), gone.ID, lease.StepDelete, nil); err != nil {
			t.Error(err)
		}
		// The calls to Nova and Neutron for the lease `gone` fail.
		return slices.DeleteFunc(slices.Clone(begun),
			func(b leasestore.StartedStep) bool { return b.ID == gone.ID })
	}

	got, err := e.advanceOnce(apply)

	if got.begun != 4 || got.finished != 2 || err != nil {
		t.Errorf(
			"round during which leases are deleted: got %d begun and %d finished steps, error %v; want 4 and 2",
			got.begun, got.finished, err,
		)
	}
	e.expectStatus(started, lease.Active)
	e.expectStatus(asked, lease.Starting) // the workflow of the lease deletes the lease
	e.expectStatus(ending, lease.Terminated)
	want := []uuid.UUID{asked.ID, gone.ID}
	slices.SortFunc(want, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(got.abandoned, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if d := cmp.Diff(want, got.abandoned); d != "" {
		t.Errorf(
			"leases whose start is abandoned, because they were deleted during the calls to Nova and Neutron (-want +got):\n%s",
			d,
		)
	}
}

func TestLeaseAdvance_DeletionDuringTheSweepIsLeftToTheLeaseWorkflow(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	e.startDue(l)
	storetest.Exec(t, e.url, `
		create function ask() returns trigger language plpgsql as $$ begin new.delete_requested_at := now(); return new; end $$`)
	storetest.Exec(t, e.url,
		`create trigger asked before update on lease for each row when (new.status = 'STARTING') execute function ask()`)

	got, err := e.advanceOnce(nil)

	if got.begun != 1 || got.finished != 0 || err != nil {
		t.Errorf(
			"round during which the lease is deleted: got %d begun and %d finished steps, error %v; want 1 and 0",
			got.begun, got.finished, err,
		)
	}
	e.expectStatus(l, lease.Starting)
}

func TestLeaseAdvance_SweepEndsLeasesWithAFailedStart(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	failed, other := e.createLease(hostsDraft(1, 2, 1, 1)), e.createActive(hostsDraft(1, 2, 1, 1))
	e.makeDue(failed)
	e.beginStep(failed.ID, lease.StepStart)
	e.finishStep(failed.ID, lease.StepStart, map[uuid.UUID]string{failed.Reservations[0].ID: "no answer"})

	e.advance(3) // the ends of both leases, and the before_end event of the lease `other`

	e.expectStatus(other, lease.Terminated)
	e.expectStatus(failed, lease.Error)
	if l := e.readLease(failed.ID); eventOf(l, lease.EndLease).Status != lease.EventFailed ||
		len(l.Reservations[0].Hosts) != 0 {
		t.Errorf("lease with a failed start after its end: got %+v, want end_lease in ERROR and no hosts", l)
	}
}

func TestLeaseAdvance_RunningBeforeEndEventDelaysNoOtherEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	warned, other := e.createActive(hostsDraft(1, 2, 1, 1)), e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(warned.ID, lease.StepBeforeEnd)

	e.advance(2)

	e.expectStatus(warned, lease.Active)
	e.expectStatus(other, lease.Terminated)
	e.finishStep(warned.ID, lease.StepBeforeEnd, nil)
	e.advance(1)
	e.expectStatus(warned, lease.Terminated)
}

func eventOf(l lease.Lease, typ lease.EventType) lease.Event {
	for _, e := range l.Events {
		if e.Type == typ {
			return e
		}
	}
	return lease.Event{}
}
