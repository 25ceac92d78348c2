package figure

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/bench/harness"
	"berth/internal/contract"
)

const (
	// queryNotStarted lists the leases that are not ACTIVE.
	queryNotStarted = `select id::text from lease where id = any($1::uuid[]) and status <> 'ACTIVE'`
	// queryNotEnded lists the leases that are not TERMINATED.
	queryNotEnded = `select id::text from lease where id = any($1::uuid[]) and status <> 'TERMINATED'`
)

// leaseFigure measures leases. leaseFigure creates leases and records how late each lease starts and ends.
type leaseFigure struct {
	*harness.Stack
	n              int
	started, ended *harness.RowWatcher // watch the leases' status
	delivered      *harness.RowWatcher // watches the delivery of notes (outbox rows)
	starts, ends   []time.Duration
}

// openLeases measures how late n leases start and end: from the due time to the status in the row.
func openLeases(n int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		interval := harness.PollInterval
		if n == single {
			interval = 2 * time.Millisecond
		}
		l := &leaseFigure{
			Stack:     s,
			n:         s.ScaleDeadlines(n),
			started:   harness.NewRowWatcher(ctx, s.Rows, interval, queryNotStarted, s.Fail),
			ended:     harness.NewRowWatcher(ctx, s.Rows, interval, queryNotEnded, s.Fail),
			delivered: harness.NewRowWatcher(ctx, s.Rows, harness.PollInterval, queryPendingNotes, s.Fail),
		}
		return &Subject{MeasureRound: l.measureRound, Details: l.details}, nil
	}
}

func (l *leaseFigure) measureRound(ctx context.Context, p harness.Pace) (one harness.Sample, err error) {
	if err := l.ensureHosts(ctx, max(len(newDeadlineSet(l.n, p.Window, time.Now()).deadlines), trialCount)); err != nil {
		return one, err
	}
	begin, trial := time.Now(), l.ScaleDeadlines(trialCount)
	tomorrow := newDeadlineSet(trial, p.Window, begin.Add(24*time.Hour).Truncate(time.Second))
	if _, err := l.createLeases(ctx, tomorrow, newDeadlineSet(trial, p.Window, tomorrow.deadlines[0].Add(time.Second))); err != nil {
		return one, err
	}
	took := time.Since(begin)
	var starts, ends *deadlineSet
	err = retryWithMargin(func(margin float64) (bool, error) {
		wait := preparationTime(l.n, trial, took, margin)
		starts = newDeadlineSet(l.n, p.Window, time.Now().Add(wait).Truncate(time.Second))
		// time for the workflows to see the start
		ends = newDeadlineSet(l.n, p.Window, starts.deadlines[len(starts.deadlines)-1].Add(wait))
		return l.runLeases(ctx, starts, ends)
	})
	l.starts, l.ends = append(l.starts, starts.lateness...), append(l.ends, ends.lateness...)
	return latenessSample(starts, ends), err
}

// runLeases creates leases and records their starts and ends. The result `inTime` is true if runLeases
// created all leases before the first lease was due to start.
func (l *leaseFigure) runLeases(ctx context.Context, starts, ends *deadlineSet) (inTime bool, err error) {
	ids, err := l.createLeases(ctx, starts, ends)
	if err != nil {
		return false, err
	}
	inTime = time.Now().Before(starts.deadlines[0])
	if err = recordAll(ctx, starts, l.started, ids); err == nil {
		err = recordAll(ctx, ends, l.ended, ids)
	}
	if err != nil {
		err = fmt.Errorf("%w; %s", err, l.describeLeases(ctx, ids))
	}
	return inTime, err
}

// describeLeases returns the number of leases in each status and the number of undelivered notes (outbox
// rows), for an error text.
func (l *leaseFigure) describeLeases(ctx context.Context, ids []string) (found string) {
	if err := l.Rows.QueryRow(ctx, `
		select string_agg(n || ' ' || status, ', ') || '; ' || (select count(*) from note) || ' notes'
		from (select status, count(*) as n from lease where id = any($1::uuid[]) group by status) as s`, ids).Scan(&found); err != nil {
		return err.Error()
	}
	return found
}

// createLeases creates for each deadline one lease, which reserves one host, and waits until the workflows of
// the leases are started.
func (l *leaseFigure) createLeases(ctx context.Context, starts, ends *deadlineSet) ([]string, error) {
	ids := make([]string, len(starts.deadlines))
	var all errgroup.Group
	all.SetLimit(l.Clients)
	for i := range ids {
		all.Go(func() (err error) {
			ids[i], err = l.API.CreateLease(ctx, starts.deadlines[i], ends.deadlines[i], oneHost())
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	workflows := make([]string, len(ids))
	for i, id := range ids {
		workflows[i] = contract.LeaseID(id)
	}
	return ids, l.delivered.Await(ctx, workflows...)
}

// recordAll records when each lease reaches the state that the watcher awaits.
func recordAll(ctx context.Context, d *deadlineSet, w *harness.RowWatcher, ids []string) error {
	harness.Pause(ctx, time.Until(d.deadlines[0])-watchLead)
	var all sync.WaitGroup
	errs := make(chan error, len(ids))
	for i, id := range ids {
		all.Go(func() {
			err := w.Await(ctx, id)
			if err == nil {
				err = d.record(i, time.Now())
			}
			if err != nil {
				errs <- fmt.Errorf("lease %s: %w", id, err)
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// watchLead is the time from the first query of a lease watcher to the first deadline of the leases.
const watchLead = 50 * time.Millisecond

// ensureHosts makes sure that at least n hosts are reservable. ensureHosts creates the first host through the
// API, and the other hosts as copies of the first host's database rows.
func (l *leaseFigure) ensureHosts(ctx context.Context, n int) error {
	var present int
	if err := l.Rows.QueryRow(ctx, `select count(*) from host`).Scan(&present); err != nil || present >= n {
		return err
	}
	if present == 0 {
		if err := l.API.CreateHost(ctx, "leased-0"); err != nil {
			return err
		}
	}
	_, err := l.Rows.Exec(ctx, insertHostsLike, present, n)
	return err
}

func (l *leaseFigure) details(context.Context) ([]harness.Detail, error) {
	var all []harness.Detail
	for _, of := range []struct {
		name  string
		times []time.Duration
	}{{"start", l.starts}, {"end", l.ends}} {
		for _, percent := range []int{50, 99, 100} {
			all = append(all, harness.Detail{
				Name:  fmt.Sprintf("%s late p%d ms", of.name, percent),
				Value: harness.Milliseconds(harness.Percentile(of.times, percent)),
			})
		}
	}
	return all, nil
}

// insertHostsLike is SQL that copies the host leased-0 to new hosts. The names of the new hosts are leased-$1
// to leased-($2 - 1), where $1 and $2 are the SQL parameters.
const insertHostsLike = `
	with model as (
		select h.*, p.id as provider_id, x.id as nested_id
		from host h
		join provider p on p.uuid = h.provider::text
		join provider x on x.uuid = h.nested::text
		where h.hostname = 'leased-0'),
	wanted as materialized (
		select n, gen_random_uuid() as provider, gen_random_uuid() as nested, nextval('provider_id') as root, nextval('provider_id') as leaf
		from generate_series(greatest($1::int, 1), $2::int - 1) as n),
	roots as (
		insert into provider (id, uuid, name, root_id)
		select root, provider::text, 'leased-' || n, root from wanted),
	leaves as (
		insert into provider (id, uuid, name, root_id, parent_id)
		select leaf, nested::text, 'blazar_leased-' || n, root, root from wanted),
	inventories as (
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select case i.provider_id when m.provider_id then w.root else w.leaf end, i.class_id, i.total, i.reserved, i.min_unit, i.max_unit,
			i.step_size, i.allocation_ratio
		from wanted w, model m
		join inventory i on i.provider_id in (m.provider_id, m.nested_id))
	insert into host (hostname, provider, nested, service_name, hypervisor_type, vcpus, memory_mb, local_gb)
	select 'leased-' || w.n, w.provider, w.nested, 'leased-' || w.n, m.hypervisor_type, m.vcpus, m.memory_mb, m.local_gb
	from wanted w, model m`

// oneHost returns the request body of a reservation of one host, which may be any host.
func oneHost() harness.Attributes {
	return harness.Attributes{
		"resource_type":         "physical:host",
		"min":                   1,
		"max":                   1,
		"hypervisor_properties": "",
		"resource_properties":   "",
	}
}
