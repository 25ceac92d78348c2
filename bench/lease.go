package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// notStarted and notEnded list leases whose status is not the one that is due.
	notStarted = `select id::text from lease where id = any($1::uuid[]) and status <> 'ACTIVE'`
	notEnded   = `select id::text from lease where id = any($1::uuid[]) and status <> 'TERMINATED'`
	// unheard lists leases whose workflow has not heard of them yet.
	unheard = `select workflow_id from note where workflow_id = any($1)`
)

// openLeases measures how late leases start and end, from the instant that is due to the status in the row, as
// somebody sees it who looks all the time.
func openLeases(n int) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		every := lookEvery
		if n == single {
			every = 2 * time.Millisecond
		}
		n := s.crowd(n)
		l := &leases{stack: s, n: n, started: watch(ctx, s.rows, every, notStarted, s.fail), ended: watch(ctx, s.rows, every, notEnded, s.fail),
			heard: watch(ctx, s.rows, lookEvery, unheard, s.fail)}
		return &subject{whole: l.round, close: l.close}, nil
	}
}

type leases struct {
	*stack
	n              int
	started, ended *watcher
	heard          *watcher // by their workflows
	starts, ends   []time.Duration
}

// round makes leases that start and end at the same time, and watches them.
func (l *leases) round(ctx context.Context, p pace) (one sample, err error) {
	if err := l.register(ctx, max(len(newBurst(l.n, p.Window, time.Now()).dues), some)); err != nil {
		return one, err
	}
	begin, few := time.Now(), l.crowd(some)
	tomorrow := newBurst(few, p.Window, begin.Add(24*time.Hour).Truncate(time.Second))
	if _, err := l.make(ctx, tomorrow, newBurst(few, p.Window, tomorrow.dues[0].Add(time.Second))); err != nil {
		return one, err
	}
	took := time.Since(begin)
	var starts, ends *burst
	err = inTime(func(margin float64) (bool, error) {
		wait := ahead(l.n, few, took, margin)
		starts = newBurst(l.n, p.Window, time.Now().Add(wait).Truncate(time.Second))
		ends = newBurst(l.n, p.Window, starts.dues[len(starts.dues)-1].Add(wait)) // their workflows see meanwhile what they have become
		return l.live(ctx, starts, ends)
	})
	l.starts, l.ends = append(l.starts, starts.late...), append(l.ends, ends.late...)
	return sampleOf(starts, ends), err
}

// live makes leases and sees them start and end; made tells whether they were there before the first start.
func (l *leases) live(ctx context.Context, starts, ends *burst) (made bool, err error) {
	ids, err := l.make(ctx, starts, ends)
	if err != nil {
		return false, err
	}
	made = time.Now().Before(starts.dues[0])
	if err = follow(ctx, starts, l.started, ids); err == nil {
		err = follow(ctx, ends, l.ended, ids)
	}
	if err != nil {
		err = fmt.Errorf("%w; %s", err, l.statuses(ctx, ids))
	}
	return made, err
}

// statuses is how many leases are in which status, and how many of their workflows have not heard what they should.
func (l *leases) statuses(ctx context.Context, ids []string) (found string) {
	if err := l.rows.QueryRow(ctx, `
		select string_agg(n || ' ' || status, ', ') || '; ' || (select count(*) from note) || ' notes'
		from (select status, count(*) as n from lease where id = any($1::uuid[]) group by status) as s`, ids).Scan(&found); err != nil {
		return err.Error()
	}
	return found
}

// make makes one lease of a host for each instant and waits until their workflows know.
func (l *leases) make(ctx context.Context, starts, ends *burst) ([]string, error) {
	ids := make([]string, len(starts.dues))
	var all errgroup.Group
	all.SetLimit(l.clients)
	for i := range ids {
		all.Go(func() (err error) {
			ids[i], err = l.api.lease(ctx, starts.dues[i], ends.dues[i], oneHost())
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	workflows := make([]string, len(ids))
	for i, id := range ids {
		workflows[i] = "lease/" + id
	}
	return ids, l.heard.await(ctx, workflows...)
}

// follow sees each of them come.
func follow(ctx context.Context, b *burst, w *watcher, ids []string) error {
	pause(ctx, time.Until(b.dues[0])-watchBefore)
	var all sync.WaitGroup
	errs := make(chan error, len(ids))
	for i, id := range ids {
		all.Go(func() {
			err := w.await(ctx, id)
			if err == nil {
				err = b.came(i, time.Now())
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

// watchBefore is how long before the first instant the rows are watched.
const watchBefore = 50 * time.Millisecond

// register makes sure that there are so many hosts to lease.
func (l *leases) register(ctx context.Context, n int) error {
	var have int
	if err := l.rows.QueryRow(ctx, `select count(*) from host`).Scan(&have); err != nil || have >= n {
		return err
	}
	if have == 0 { // the first by the API, which knows what belongs to a host; the others after its example
		if err := l.api.host(ctx, "leased-0"); err != nil {
			return err
		}
	}
	_, err := l.rows.Exec(ctx, hostsLike, have, n)
	return err
}

func (l *leases) close(context.Context) ([]detail, error) {
	var all []detail
	for _, of := range []struct {
		name  string
		times []time.Duration
	}{{"start", l.starts}, {"end", l.ends}} {
		for _, percent := range []int{50, 99, 100} {
			all = append(all, detail{fmt.Sprintf("%s late p%d ms", of.name, percent), milliseconds(percentile(of.times, percent))})
		}
	}
	return all, nil
}

// hostsLike adds the hosts from $1 to $2, as leased-0 is.
const hostsLike = `
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
	stock as (
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select case i.provider_id when m.provider_id then w.root else w.leaf end, i.class_id, i.total, i.reserved, i.min_unit, i.max_unit,
			i.step_size, i.allocation_ratio
		from wanted w, model m
		join inventory i on i.provider_id in (m.provider_id, m.nested_id))
	insert into host (hostname, provider, nested, service_name, hypervisor_type, vcpus, memory_mb, local_gb)
	select 'leased-' || w.n, w.provider, w.nested, 'leased-' || w.n, m.hypervisor_type, m.vcpus, m.memory_mb, m.local_gb
	from wanted w, model m`

// host registers a host that can be leased.
func (a *api) host(ctx context.Context, name string) error {
	var made struct {
		UUID       string
		Generation int
	}
	if err := a.post(ctx, "/placement/resource_providers", attributes{"name": name}, &made); err != nil {
		return err
	}
	if err := a.send(ctx, "PUT", "/placement/resource_providers/"+made.UUID+"/inventories", attributes{
		"resource_provider_generation": made.Generation,
		"inventories":                  attributes{"VCPU": attributes{"total": 64}, "MEMORY_MB": attributes{"total": 262144}, "DISK_GB": attributes{"total": 2000}},
	}, nil); err != nil {
		return err
	}
	return a.post(ctx, "/reservation/v1/os-hosts", attributes{"name": name}, nil)
}

// lease makes a lease with those reservations.
func (a *api) lease(ctx context.Context, start, end time.Time, reservations ...attributes) (id string, err error) {
	var made struct{ Lease struct{ ID string } }
	err = a.post(ctx, "/reservation/v1/leases", attributes{"name": "bench", "start_date": start.UTC().Format(time.RFC3339Nano),
		"end_date": end.UTC().Format(time.RFC3339Nano), "events": []any{}, "reservations": append([]attributes{}, reservations...)}, &made)
	if err == nil && made.Lease.ID == "" {
		err = fmt.Errorf("the answer to the creation of a lease has no ID")
	}
	return made.Lease.ID, err
}

// oneHost reserves any one host.
func oneHost() attributes {
	return attributes{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
}
