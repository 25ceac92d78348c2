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
func (t *leasing) sweepOnce(apply applyFunc) (r sweepResult, err error) {
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
func (t *leasing) sweep(apply applyFunc) (finished int, err error) {
	for {
		r, err := t.sweepOnce(apply)
		finished += r.finished
		if r.begun == 0 || err != nil {
			return finished, err
		}
	}
}

// advance sweeps without Nova and Neutron, and expects this number of finished steps.
func (t *leasing) advance(want int) {
	t.Helper()
	if n, err := t.sweep(nil); n != want || err != nil {
		t.Errorf("%d steps finished, want %d: %v", n, want, err)
	}
}

// startDue makes the lease's start lie in the past, and its end an hour ahead.
func (t *leasing) startDue(l lease.Lease) {
	t.Helper()
	t.due(l)
	storetest.Exec(t, t.url, `update event set at = now() + interval '1 hour' where lease_id = $1 and event_type <> 'start_lease'`, l.ID)
}

func (t *leasing) is(l lease.Lease, want lease.Status) {
	t.Helper()
	if got := t.read(l.ID).Status; got != want {
		t.Errorf("lease %s is %s instead of %s", l.Name, got, want)
	}
}

func TestWhatIsDueIsTakenTogetherEndsFirst(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 4)
	named := func(name string, d lease.Draft) lease.Draft { d.Name = name; return d }
	ending := e.active(named("ending", hostsDraft(1, 2, 1, 1)))
	e.begin(ending.ID, lease.StepBeforeEnd)
	e.finish(ending.ID, lease.StepBeforeEnd, nil)
	starting, empty := e.create(named("starting", hostsDraft(1, 2, 2, 2))), e.create(lease.Draft{Name: "empty", User: "u", Project: "p",
		Start: lease.RequestedDate{At: hour(1)}, End: lease.RequestedDate{At: hour(2)}})
	next, later := e.create(named("next", hostsDraft(3, 4, 4, 4))), e.create(named("later", hostsDraft(5, 6, 1, 1)))
	deleted := e.create(named("deleted", lease.Draft{User: "u", Project: "p", Start: lease.RequestedDate{At: hour(1)}, End: lease.RequestedDate{At: hour(2)}}))
	for _, l := range []lease.Lease{starting, empty, deleted} {
		e.startDue(l)
	}
	storetest.Exec(t, e.url, `update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, next.ID)
	storetest.Exec(t, e.url, `update lease set delete_requested_at = now() where id = $1`, deleted.ID)

	e.advance(3)

	e.is(ending, lease.Terminated)
	e.is(starting, lease.Active)
	e.is(empty, lease.Active)
	e.is(next, lease.Pending) // starting has two of its hosts
	e.is(later, lease.Pending)
	e.is(deleted, lease.Pending)
	if got := e.held(starting.Reservations[0].ID); len(got) != 2 {
		t.Errorf("an ACTIVE lease holds %v", got)
	}
	for _, l := range []lease.Lease{starting, empty} {
		e.due(l) // their warnings too
	}

	e.advance(5)

	for _, l := range []lease.Lease{starting, empty} {
		if warning := eventOf(e.read(l.ID), lease.BeforeEndLease); warning.Status != lease.EventDone {
			t.Errorf("the warning of %s is %s", l.Name, warning.Status)
		}
	}

	e.is(starting, lease.Terminated)
	e.is(next, lease.Active) // in the same sweep, right after
	e.advance(0)
}

// TestCrowdKeepsNobodyElseFromHisTurn: more are due than are taken at once.
func TestCrowdKeepsNobodyElseFromHisTurn(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	const crowd = 51
	for range crowd {
		e.create(lease.Draft{Name: "crowd", User: "u", Project: "p", Start: lease.RequestedDate{At: hour(1)}, End: lease.RequestedDate{At: hour(2)}})
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
	ending := e.active(hostsDraft(1, 2, 1, 1))
	e.begin(ending.ID, lease.StepBeforeEnd)
	e.finish(ending.ID, lease.StepBeforeEnd, nil)

	once()

	e.is(ending, lease.Terminated) // an end, which gives hosts back, comes before starts that are due for longer
	once()
	due(lease.BeforeEndLease)
	due(lease.EndLease)
	storetest.Exec(t, e.url, `update lease set delete_requested_at = now() where name = 'crowd'`)
	starting := e.create(hostsDraft(1, 2, 1, 1))
	e.startDue(starting)

	once()

	e.is(starting, lease.Active) // the crowd is its own workflows' to delete
}

func TestStepThatDoesNotGoWellHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 3)
	var all []lease.Lease
	for range 3 {
		all = append(all, e.create(hostsDraft(1, 2, 1, 1)))
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

	e.is(all[0], lease.Active)
	e.is(all[1], lease.Starting) // as its own workflow takes it up
	e.is(all[2], lease.Active)
	e.advance(0)
}

func TestWhatTheWorldDoesNotWantIsLeftToItsWorkflow(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 3)
	var all []lease.Lease
	for range 3 {
		all = append(all, e.create(hostsDraft(1, 2, 1, 1)))
		e.startDue(all[len(all)-1])
	}
	storetest.Exec(t, e.url, `delete from note`)

	n, err := e.sweep(func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for _, b := range begun {
			if b.Step != lease.StepStart || b.Status != lease.Starting {
				t.Errorf("%s of a lease that is %s", b.Step, b.Status)
			}
			e.is(b.Lease, lease.Starting) // as everybody sees it
		}
		return slices.DeleteFunc(slices.Clone(begun), func(b leasestore.StartedStep) bool { return b.ID == all[2].ID })
	})

	if n != 2 || err != nil {
		t.Errorf("%d advanced: %v", n, err)
	}
	e.is(all[0], lease.Active)
	e.is(all[1], lease.Active)
	e.is(all[2], lease.Starting)
	rows, err := storetest.Connect(t, e.url).Query(t.Context(), `select workflow_id from note`)
	if err != nil {
		t.Fatal(err)
	}
	told, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if d := cmp.Diff([]string{"lease/" + all[2].ID.String()}, told); d != "" || err != nil {
		t.Errorf("workflows that hear of it: %s %v", d, err)
	}
	e.advance(0)
}

func TestWhatTheWorldCallsReservationsIsRemembered(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.create(hostsDraft(1, 2, 2, 2))
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

	l = e.read(l.ID)
	if r := l.Reservations[0]; l.Status != lease.Active || r.AggregateID == nil || *r.AggregateID != 7 || r.ServerGroupID != "group" {
		t.Errorf("%+v", l)
	}
	want, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil || len(want.ComputeHosts) != 2 {
		t.Fatalf("%+v, %v", want, err)
	}
	for _, c := range claims {
		if d := cmp.Diff(want.ComputeHosts, c[0].ComputeHosts); d != "" || c[0].Project != l.Project {
			t.Errorf("what the world hears: %s %+v", d, c[0])
		}
	}
}

func TestMarkOfAnotherShapeThanThoseThatAreOutChangesNothing(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	l := e.active(hostsDraft(1, 2, 1, 1))
	r := l.Reservations[0]
	storetest.Exec(t, e.url, `update reservation set shaped = 3, shape = 5 where id = $1`, r.ID)
	for _, shape := range []int64{4, 3, 6} { // the cloud was told of the fourth, and nobody knows a sixth
		if err := e.Lease.SaveCloudIDs(t.Context(), r.ID, lease.CloudIDs{Revision: shape, AggregateID: new(10 * shape)}); err != nil {
			t.Error(err)
		}
	}

	if r = e.read(l.ID).Reservations[0]; r.CloudRevision != 4 || r.Revision != 5 || r.AggregateID == nil || *r.AggregateID != 40 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsGivenUpWhileItIsBroughtIntoTheWorldLeavesNothingThere(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 4)
	started, asked, gone, ending := e.create(hostsDraft(1, 2, 1, 1)), e.create(hostsDraft(1, 2, 1, 1)), e.create(hostsDraft(1, 2, 1, 1)), e.active(hostsDraft(1, 2, 1, 1))
	e.begin(ending.ID, lease.StepBeforeEnd)
	e.finish(ending.ID, lease.StepBeforeEnd, nil)
	for _, l := range []lease.Lease{started, asked, gone} {
		e.startDue(l)
	}
	apply := func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for _, l := range []lease.Lease{asked, gone, ending} {
			if there, err := e.Lease.DeleteLease(t.Context(), l.ID); there || err != nil {
				t.Errorf("%t, %v", there, err)
			}
		}
		e.begin(gone.ID, lease.StepDelete)
		if _, err := e.Lease.FinishLease(t.Context(), gone.ID, lease.StepDelete, nil); err != nil {
			t.Error(err)
		}
		return slices.DeleteFunc(slices.Clone(begun), func(b leasestore.StartedStep) bool { return b.ID == gone.ID }) // half of it is there
	}

	got, err := e.sweepOnce(apply)

	if got.begun != 4 || got.finished != 2 || err != nil {
		t.Errorf("%d begun, %d finished, %v", got.begun, got.finished, err)
	}
	e.is(started, lease.Active)
	e.is(asked, lease.Starting) // its workflow deletes it
	e.is(ending, lease.Terminated)
	want := []uuid.UUID{asked.ID, gone.ID}
	slices.SortFunc(want, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(got.abandoned, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if d := cmp.Diff(want, got.abandoned); d != "" {
		t.Errorf("abandoned: %s", d)
	}
}

func TestWhatIsGivenUpWithoutAWorldIsLeftToItsWorkflow(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	l := e.create(hostsDraft(1, 2, 1, 1))
	e.startDue(l)
	storetest.Exec(t, e.url, `
		create function ask() returns trigger language plpgsql as $$ begin new.delete_requested_at := now(); return new; end $$`)
	storetest.Exec(t, e.url, `create trigger asked before update on lease for each row when (new.status = 'STARTING') execute function ask()`)

	got, err := e.sweepOnce(nil)

	if got.begun != 1 || got.finished != 0 || err != nil {
		t.Errorf("%d begun, %d finished, %v", got.begun, got.finished, err)
	}
	e.is(l, lease.Starting)
}

func TestLeaseWhoseStartFailedEndsWithTheOthers(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	failed, other := e.create(hostsDraft(1, 2, 1, 1)), e.active(hostsDraft(1, 2, 1, 1))
	e.due(failed)
	e.begin(failed.ID, lease.StepStart)
	e.finish(failed.ID, lease.StepStart, map[uuid.UUID]string{failed.Reservations[0].ID: "no answer"})

	e.advance(3) // and the other's warning

	e.is(other, lease.Terminated)
	e.is(failed, lease.Error)
	if l := e.read(failed.ID); eventOf(l, lease.EndLease).Status != lease.EventFailed || len(l.Reservations[0].Hosts) != 0 {
		t.Errorf("%+v", l)
	}
}

func TestEndWhoseWarningIsOnItsWayKeepsNobodyFromHisOwn(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	warned, other := e.active(hostsDraft(1, 2, 1, 1)), e.active(hostsDraft(1, 2, 1, 1))
	e.begin(warned.ID, lease.StepBeforeEnd)

	e.advance(2)

	e.is(warned, lease.Active)
	e.is(other, lease.Terminated)
	e.finish(warned.ID, lease.StepBeforeEnd, nil)
	e.advance(1)
	e.is(warned, lease.Terminated)
}

// TestBackToBackLeasesNeverOverlap lets one lease begin on each host in the second in which another ends, with many at
// work at once. Who leaves a host is seen before who gets it.
func TestBackToBackLeasesNeverOverlap(t *testing.T) {
	t.Parallel()
	pairs := storetest.Rounds(t, 20)
	e := newLeasing(t, pairs)
	at := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	var before, after []lease.Lease
	for range pairs {
		before = append(before, e.create(lease.Draft{Name: "before", User: "u", Project: "p", Start: lease.RequestedDate{At: at.Add(-time.Minute)},
			End: lease.RequestedDate{At: at}, Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}}}))
	}
	for range pairs {
		after = append(after, e.create(lease.Draft{Name: "after", User: "u", Project: "p", Start: lease.RequestedDate{At: at},
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
			for done := 0; done < 2; { // twice nothing: who was locked the first time is not the second
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
		e.is(l, lease.Terminated)
		ended[before[i].Reservations[0].Hosts[0]] = eventOf(e.read(l.ID), lease.EndLease).UpdatedAt.UTC()
	}
	for _, l := range after {
		e.is(l, lease.Active)
		host := l.Reservations[0].Hosts[0]
		if began := eventOf(e.read(l.ID), lease.StartLease).UpdatedAt; !ended[host].Before(*began) {
			t.Errorf("on host %d one begins at %s and the one before ends at %s", host, began, ended[host])
		}
		if got := e.held(l.Reservations[0].ID); len(got) != 1 {
			t.Errorf("an ACTIVE lease holds %v", got)
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

func TestThoseWhoAreDueAtOneInstantAreCountedInOneOrder(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 4)
	var crowd []lease.Lease
	for range 3 {
		crowd = append(crowd, e.create(hostsDraft(1, 2, 1, 1)))
	}
	alone := e.create(hostsDraft(3, 4, 1, 1))
	slices.SortFunc(crowd, func(a, b lease.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) })

	got, err := e.Lease.LeaseRanks(t.Context(), map[uuid.UUID]time.Time{crowd[0].ID: hour(1), crowd[2].ID: hour(1), alone.ID: hour(3), crowd[1].ID: hour(7), uuid.New(): hour(1)})

	if d := cmp.Diff(map[uuid.UUID]int{crowd[0].ID: 0, crowd[2].ID: 2, alone.ID: 0}, got); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

// TestWhoComesToBeAmongTheFirstHearsOfIt: he has counted too many before him to come in time, and they are gone.
func TestWhoComesToBeAmongTheFirstHearsOfIt(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 6)
	var all []lease.Lease
	for range 6 {
		all = append(all, e.create(hostsDraft(1, 2, 1, 1)))
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) })
	told := func(do func()) (others []string) {
		t.Helper()
		storetest.Exec(t, e.url, `delete from note`)
		do()
		rows, err := storetest.Connect(t, e.url).Query(t.Context(), `select workflow_id from note`)
		if err != nil {
			t.Fatal(err)
		}
		others, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(others)
		return others
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
		{"the last goes", remove(5), names(5)},
		{"one of the first moves", func() {
			if _, err := e.Lease.UpdateLease(t.Context(), all[1].ID, lease.Change{Start: &lease.RequestedDate{At: hour(1).Add(time.Minute)}}); err != nil {
				t.Error(err)
			}
		}, names(1, 4)},
		{"one is renamed", func() {
			if _, err := e.Lease.UpdateLease(t.Context(), all[0].ID, lease.Change{Name: new("new")}); err != nil {
				t.Error(err)
			}
		}, names(0)},
		{"another of the first goes", remove(2), names(2, 4)}, // all of them end together
		{"and there are few", remove(3), names(3)},
	} {
		if d := cmp.Diff(c.want, told(c.do)); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
}
