package leasestore_test

import (
	"slices"
	"sync"
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

// applyFunc stands for the calls to Nova and Neutron. It returns the steps whose calls succeeded.
type applyFunc func([]leasestore.StartedStep) []leasestore.StartedStep

// sweepResult is the result of one round of a sweep.
type sweepResult struct {
	begun, finished int
	abandoned       []uuid.UUID // of the steps that were ready
}

// sweepOnce begins due steps, calls apply, and finishes the steps that apply returns. Without apply, all ready steps succeed.
func (t *fixture) sweepOnce(apply applyFunc) (r sweepResult, err error) {
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

// sweep runs rounds until no lease is due. It returns how many steps were finished.
func (t *fixture) sweep(apply applyFunc) (finished int, err error) {
	for {
		r, err := t.sweepOnce(apply)
		finished += r.finished
		if r.begun == 0 || err != nil {
			return finished, err
		}
	}
}

// advance sweeps without Nova and Neutron, and expects this number of finished steps.
func (t *fixture) advance(want int) {
	t.Helper()
	if n, err := t.sweep(nil); n != want || err != nil {
		t.Errorf("%d steps finished, want %d: %v", n, want, err)
	}
}

// startDue makes the lease's start lie in the past, and its end an hour ahead.
func (t *fixture) startDue(l lease.Lease) {
	t.Helper()
	t.makeDue(l)
	storetest.Exec(t, t.url, `update event set at = now() + interval '1 hour' where lease_id = $1 and event_type <> 'start_lease'`, l.ID)
}

func (t *fixture) expectStatus(l lease.Lease, want lease.Status) {
	t.Helper()
	if got := t.readLease(l.ID).Status; got != want {
		t.Errorf("lease %s is %s instead of %s", l.Name, got, want)
	}
}

func TestLeaseAdvance_SweepFinishesEndsBeforeStarts(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 4)
	named := func(name string, d lease.Draft) lease.Draft { d.Name = name; return d }
	ending := e.createActive(named("ending", hostsDraft(1, 2, 1, 1)))
	e.beginStep(ending.ID, lease.StepBeforeEnd)
	e.finishStep(ending.ID, lease.StepBeforeEnd, nil)
	starting, empty := e.createLease(named("starting", hostsDraft(1, 2, 2, 2))), e.createLease(lease.Draft{Name: "empty", User: "u", Project: "p",
		Start: lease.RequestedDate{At: hour(1)}, End: lease.RequestedDate{At: hour(2)}})
	next, later := e.createLease(named("next", hostsDraft(3, 4, 4, 4))), e.createLease(named("later", hostsDraft(5, 6, 1, 1)))
	deleted := e.createLease(named("deleted", lease.Draft{User: "u", Project: "p", Start: lease.RequestedDate{At: hour(1)}, End: lease.RequestedDate{At: hour(2)}}))
	for _, l := range []lease.Lease{starting, empty, deleted} {
		e.startDue(l)
	}
	storetest.Exec(t, e.url, `update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, next.ID)
	storetest.Exec(t, e.url, `update lease set delete_requested_at = now() where id = $1`, deleted.ID)

	e.advance(3)

	e.expectStatus(ending, lease.Terminated)
	e.expectStatus(starting, lease.Active)
	e.expectStatus(empty, lease.Active)
	e.expectStatus(next, lease.Pending) // starting has two of its hosts
	e.expectStatus(later, lease.Pending)
	e.expectStatus(deleted, lease.Pending)
	if got := e.inventoryHosts(starting.Reservations[0].ID); len(got) != 2 {
		t.Errorf("hosts of an ACTIVE lease in inventory: %v", got)
	}
	for _, l := range []lease.Lease{starting, empty} {
		e.makeDue(l) // their before_end events too
	}

	e.advance(5)

	for _, l := range []lease.Lease{starting, empty} {
		if warning := eventOf(e.readLease(l.ID), lease.BeforeEndLease); warning.Status != lease.EventDone {
			t.Errorf("before_end event of %s is %s", l.Name, warning.Status)
		}
	}

	e.expectStatus(starting, lease.Terminated)
	e.expectStatus(next, lease.Active) // in the same sweep, right after
	e.advance(0)
}

// More leases are due than one sweep begins.
func TestLeaseAdvance_ManyDueLeasesDelayNoOtherLease(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	const crowd = 51
	for range crowd {
		e.createLease(lease.Draft{Name: "crowd", User: "u", Project: "p", Start: lease.RequestedDate{At: hour(1)}, End: lease.RequestedDate{At: hour(2)}})
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
		if got, err := e.sweepOnce(nil); got.begun == 0 || got.finished != got.begun || err != nil {
			t.Errorf("%d begun, %d finished, %v", got.begun, got.finished, err)
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

	e.expectStatus(starting, lease.Active) // the deletions are left to the lease workflows
}

func TestLeaseAdvance_FailedStepDelaysNoOtherLease(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	var all []lease.Lease
	for range 3 {
		all = append(all, e.createLease(hostsDraft(1, 2, 1, 1)))
	}
	other := inventory.ConsumerWrite{Consumer: uuid.NewString(), Project: "p", User: "u", Expect: inventory.ExpectAbsent(),
		Allocations: inventory.Allocations{e.hosts[all[1].Reservations[0].Hosts[0]-1].NestedProvider.String(): {lease.HostResourceClass: 1}}}
	if err := e.Inventory.ReplaceAllocations(t.Context(), []inventory.ConsumerWrite{other}); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		e.startDue(l)
	}

	e.advance(2)

	e.expectStatus(all[0], lease.Active)
	e.expectStatus(all[1], lease.Starting) // its workflow retries it
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

	n, err := e.sweep(func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for _, b := range begun {
			if b.Step != lease.StepStart || b.Status != lease.Starting {
				t.Errorf("%s of a lease that is %s", b.Step, b.Status)
			}
			e.expectStatus(b.Lease, lease.Starting) // committed before the calls
		}
		return slices.DeleteFunc(slices.Clone(begun), func(b leasestore.StartedStep) bool { return b.ID == all[2].ID })
	})

	if n != 2 || err != nil {
		t.Errorf("%d advanced: %v", n, err)
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
		t.Errorf("nudged workflows: %s %v", d, err)
	}
	e.advance(0)
}

func TestLeaseAdvance_StoresCloudIDs(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(hostsDraft(1, 2, 2, 2))
	e.startDue(l)
	var claims [][]lease.CloudReservation
	apply := func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for i, b := range begun {
			claims = append(claims, b.CloudReservations)
			begun[i].CloudIDs = map[uuid.UUID]lease.CloudIDs{b.CloudReservations[0].ID: {AggregateID: new(int64(7)), ServerGroupID: "group"}}
		}
		return begun
	}

	if n, err := e.sweep(apply); n != 1 || err != nil {
		t.Errorf("%d advanced: %v", n, err)
	}

	l = e.readLease(l.ID)
	if r := l.Reservations[0]; l.Status != lease.Active || r.AggregateID == nil || *r.AggregateID != 7 || r.ServerGroupID != "group" {
		t.Errorf("%+v", l)
	}
	want, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil || len(want.ComputeHosts) != 2 {
		t.Fatalf("%+v, %v", want, err)
	}
	for _, c := range claims {
		if d := cmp.Diff(want.ComputeHosts, c[0].ComputeHosts); d != "" || c[0].Project != l.Project {
			t.Errorf("reservation for Nova and Neutron: %s %+v", d, c[0])
		}
	}
}

func TestReservationCloud_SaveCloudIDsIgnoresOtherRevisions(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createActive(hostsDraft(1, 2, 1, 1))
	r := l.Reservations[0]
	storetest.Exec(t, e.url, `update reservation set shaped = 3, shape = 5 where id = $1`, r.ID)
	for _, shape := range []int64{4, 3, 6} { // only revision 4 is between the stored revision 3 and the current revision 5
		if err := e.Lease.SaveCloudIDs(t.Context(), r.ID, lease.CloudIDs{Revision: shape, AggregateID: new(10 * shape)}); err != nil {
			t.Error(err)
		}
	}

	if r = e.readLease(l.ID).Reservations[0]; r.CloudRevision != 4 || r.Revision != 5 || r.AggregateID == nil || *r.AggregateID != 40 {
		t.Errorf("%+v", r)
	}
}

func TestLeaseAdvance_DeletionDuringCloudCallsAbandonsTheStart(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 4)
	started, asked, gone, ending := e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(1, 2, 1, 1)), e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(ending.ID, lease.StepBeforeEnd)
	e.finishStep(ending.ID, lease.StepBeforeEnd, nil)
	for _, l := range []lease.Lease{started, asked, gone} {
		e.startDue(l)
	}
	apply := func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for _, l := range []lease.Lease{asked, gone, ending} {
			if there, err := e.Lease.DeleteLease(t.Context(), l.ID); there || err != nil {
				t.Errorf("%t, %v", there, err)
			}
		}
		e.beginStep(gone.ID, lease.StepDelete)
		if _, err := e.Lease.FinishLease(t.Context(), gone.ID, lease.StepDelete, nil); err != nil {
			t.Error(err)
		}
		return slices.DeleteFunc(slices.Clone(begun), func(b leasestore.StartedStep) bool { return b.ID == gone.ID }) // its calls failed
	}

	got, err := e.sweepOnce(apply)

	if got.begun != 4 || got.finished != 2 || err != nil {
		t.Errorf("%d begun, %d finished, %v", got.begun, got.finished, err)
	}
	e.expectStatus(started, lease.Active)
	e.expectStatus(asked, lease.Starting) // its workflow deletes it
	e.expectStatus(ending, lease.Terminated)
	want := []uuid.UUID{asked.ID, gone.ID}
	slices.SortFunc(want, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(got.abandoned, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if d := cmp.Diff(want, got.abandoned); d != "" {
		t.Errorf("abandoned: %s", d)
	}
}

func TestLeaseAdvance_DeletionDuringTheSweepIsLeftToTheLeaseWorkflow(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	e.startDue(l)
	storetest.Exec(t, e.url, `
		create function ask() returns trigger language plpgsql as $$ begin new.delete_requested_at := now(); return new; end $$`)
	storetest.Exec(t, e.url, `create trigger asked before update on lease for each row when (new.status = 'STARTING') execute function ask()`)

	got, err := e.sweepOnce(nil)

	if got.begun != 1 || got.finished != 0 || err != nil {
		t.Errorf("%d begun, %d finished, %v", got.begun, got.finished, err)
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

	e.advance(3) // and the before_end event of the other lease

	e.expectStatus(other, lease.Terminated)
	e.expectStatus(failed, lease.Error)
	if l := e.readLease(failed.ID); eventOf(l, lease.EndLease).Status != lease.EventFailed || len(l.Reservations[0].Hosts) != 0 {
		t.Errorf("%+v", l)
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

// On each host, one lease starts at the end of another, while several workers sweep. The end of the first lease is committed before
// the start of the second.
func TestLeaseAdvance_BackToBackLeasesNeverOverlap(t *testing.T) {
	t.Parallel()
	pairs := storetest.Rounds(t, 20)
	e := newFixture(t, pairs)
	at := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	var before, after []lease.Lease
	for range pairs {
		before = append(before, e.createLease(lease.Draft{Name: "before", User: "u", Project: "p", Start: lease.RequestedDate{At: at.Add(-time.Minute)},
			End: lease.RequestedDate{At: at}, Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}}}))
	}
	for range pairs {
		after = append(after, e.createLease(lease.Draft{Name: "after", User: "u", Project: "p", Start: lease.RequestedDate{At: at},
			End: lease.RequestedDate{At: at.Add(time.Minute)}, Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}}}))
	}
	storetest.Exec(t, e.url, `update event set at = now() - interval '1 minute' where event_type = 'start_lease' and lease_id in (select id from lease where name = 'before')`)
	e.advance(pairs)
	storetest.Exec(t, e.url, `update event set status = 'DONE' where event_type = 'before_end_lease'`)
	storetest.Exec(t, e.url, `
		update event
		set at = now()
		where (event_type, lease_id) in (select 'end_lease', id from lease where name = 'before' union all select 'start_lease', id from lease where name = 'after')`)

	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for done := 0; done < 2; { // stop after two empty sweeps: a locked lease is skipped once
				n, err := e.sweep(nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					done++
				}
			}
		})
	}
	workers.Wait()
	e.sweep(nil)

	ended := map[int64]time.Time{}
	for i, l := range before {
		e.expectStatus(l, lease.Terminated)
		ended[before[i].Reservations[0].Hosts[0]] = eventOf(e.readLease(l.ID), lease.EndLease).UpdatedAt.UTC()
	}
	for _, l := range after {
		e.expectStatus(l, lease.Active)
		host := l.Reservations[0].Hosts[0]
		if began := eventOf(e.readLease(l.ID), lease.StartLease).UpdatedAt; !ended[host].Before(*began) {
			t.Errorf("host %d: next lease begins at %s, previous lease ends at %s", host, began, ended[host])
		}
		if got := e.inventoryHosts(l.Reservations[0].ID); len(got) != 1 {
			t.Errorf("hosts of an ACTIVE lease in inventory: %v", got)
		}
	}
}

func eventOf(l lease.Lease, typ lease.EventType) lease.Event {
	for _, e := range l.Events {
		if e.Type == typ {
			return e
		}
	}
	return lease.Event{}
}

func TestLeaseRank_CountsLeasesWithTheSameInstantByID(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 4)
	var crowd []lease.Lease
	for range 3 {
		crowd = append(crowd, e.createLease(hostsDraft(1, 2, 1, 1)))
	}
	alone := e.createLease(hostsDraft(3, 4, 1, 1))
	slices.SortFunc(crowd, func(a, b lease.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) })

	got, err := e.Lease.LeaseRanks(t.Context(), map[uuid.UUID]time.Time{crowd[0].ID: hour(1), crowd[2].ID: hour(1), alone.ID: hour(3), crowd[1].ID: hour(7), uuid.New(): hour(1)})

	if d := cmp.Diff(map[uuid.UUID]int{crowd[0].ID: 0, crowd[2].ID: 2, alone.ID: 0}, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

// A lease that moves up to the leaders of an instant is nudged, because it has computed a later wake-up time.
func TestLeaseStep_NewLeadersAreNudged(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 6)
	var all []lease.Lease
	for range 6 {
		all = append(all, e.createLease(hostsDraft(1, 2, 1, 1)))
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) })
	notedWorkflows := func(do func()) (workflows []string) {
		t.Helper()
		storetest.Exec(t, e.url, `delete from note`)
		do()
		rows, err := storetest.Connect(t, e.url).Query(t.Context(), `select workflow_id from note`)
		if err != nil {
			t.Fatal(err)
		}
		workflows, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(workflows)
		return workflows
	}
	remove := func(i int) func() {
		return func() {
			if gone, err := e.Lease.DeleteLease(t.Context(), all[i].ID); !gone || err != nil {
				t.Errorf("%t, %v", gone, err)
			}
		}
	}
	names := func(which ...int) (names []string) {
		for _, i := range which {
			names = append(names, "lease/"+all[i].ID.String())
		}
		return names
	}

	for _, c := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the last lease is deleted", remove(5), names(5)},
		{"a leader moves to another instant", func() {
			if _, err := e.Lease.UpdateLease(t.Context(), all[1].ID, lease.Change{Start: &lease.RequestedDate{At: hour(1).Add(time.Minute)}}); err != nil {
				t.Error(err)
			}
		}, names(1, 4)},
		{"a leader is renamed", func() {
			if _, err := e.Lease.UpdateLease(t.Context(), all[0].ID, lease.Change{Name: new("new")}); err != nil {
				t.Error(err)
			}
		}, names(0)},
		{"another leader is deleted", remove(2), names(2, 4)}, // all end at the same instant
		{"no lease moves up", remove(3), names(3)},
	} {
		if d := cmp.Diff(c.want, notedWorkflows(c.do)); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
}
