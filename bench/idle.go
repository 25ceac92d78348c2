package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
)

// idle is a great many ports that nobody reports.
type idle struct {
	*plant
	count  int
	mu     sync.Mutex
	ports  []string
	states []footprint     // while they become more, and after berth was killed
	up     time.Duration   // from its new start until it was ready
	served []time.Duration // from the reports of a port after that to ACTIVE
}

// footprint is what so many idle ports take at one moment, in bytes.
type footprint struct {
	ports                  int
	worker, rows, temporal int64
}

// openIdle measures what many open ports cost that wait for their agents: memory, room in the databases, and how soon
// reports of some of them are taken by a worker that follows one that was killed. Nothing is mirrored meanwhile.
func openIdle(ctx context.Context, s *stack) (*subject, error) {
	d := &idle{plant: newPlant(ctx, s, 1, lookEvery), count: s.idle}
	return &subject{
		before: func(ctx context.Context) error {
			if err := d.prepare(ctx); err != nil {
				return err
			}
			return s.hold(ctx, contract.JournalEntry)
		},
		whole: d.measure,
		after: func(ctx context.Context) error {
			_, err := s.rows.Exec(ctx, `
				drop trigger bench_hold on note;
				delete from note where workflow = 'JournalEntry';
				delete from journal_entry where finished_at is null`)
			return err
		},
		close: d.details,
	}, nil
}

const (
	perRequest = 100 // ports
	makers     = 4   // requests at the same time
)

// milestones are at how many ports berth's memory is looked at, besides the end.
var milestones = []int{1000, 5000, 10000, 20000}

func (d *idle) measure(ctx context.Context, _ pace) (sample, error) {
	if err := d.look(ctx); err != nil {
		return sample{}, err
	}
	before, err := spent()
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	for _, n := range append(slices.DeleteFunc(slices.Clone(milestones), func(n int) bool { return n >= d.count }), d.count) {
		if err := d.grow(ctx, n); err != nil {
			return sample{}, err
		}
	}
	one := sample{Count: d.count, Seconds: time.Since(begin).Seconds()}
	after, err := spent()
	one.CPU = after.since(before)
	if err != nil {
		return one, err
	}
	if err := d.restart(ctx); err != nil {
		return one, err
	}
	return one, d.look(ctx)
}

// grow makes ports until there are n, and looks.
func (d *idle) grow(ctx context.Context, n int) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(makers)
	for left := n - len(d.ports); left > 0; left -= perRequest {
		group.Go(func() error { return d.make(within, min(left, perRequest)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return d.look(ctx)
}

// make makes some ports and waits until each has a workflow.
func (d *idle) make(ctx context.Context, n int) error {
	if err := d.api.agents(ctx); err != nil { // it may take longer than agents may be silent
		return err
	}
	drafts := make([]attributes, n)
	for i := range drafts {
		drafts[i] = serverPort(d.networks[0])
	}
	var made struct{ Ports []struct{ ID string } }
	if err := d.api.post(ctx, "/networking/v2.0/ports", map[string]any{"ports": drafts}, &made); err != nil {
		return err
	}
	workflows := make([]string, len(made.Ports))
	d.mu.Lock()
	for i, p := range made.Ports {
		d.ports, workflows[i] = append(d.ports, p.ID), contract.PortID(p.ID)
	}
	d.mu.Unlock()
	return d.known.await(ctx, workflows...)
}

func (d *idle) look(ctx context.Context) error {
	f := footprint{ports: len(d.ports)}
	var err error
	if f.worker, err = d.api.resident(); err != nil {
		return err
	}
	err = d.rows.QueryRow(ctx, `
		select pg_database_size(current_database()), coalesce((select sum(pg_database_size(datname)) from pg_database where datname like 'temporal%'), 0)`).
		Scan(&f.rows, &f.temporal)
	d.states = append(d.states, f)
	return err
}

// revived is for how long ports are reported, ten a second, once berth has been killed and is ready again: for as long
// as the server may still believe that the killed one will take them.
const revived = 10 * time.Second

// restart kills berth in the middle of its work, starts it again, and has some ports reported, spread over all that
// there are.
func (d *idle) restart(ctx context.Context) error {
	some := min(int(revived.Seconds()*arrivals), len(d.ports)/2)
	for i := range min(some, arrivals) { // the last, one after the other
		if _, err := d.connect(ctx, d.ports[len(d.ports)-1-i]); err != nil {
			return err
		}
	}
	d.api.kill()
	begin := time.Now()
	if err := d.boot(ctx, d.api); err != nil {
		return err
	}
	d.up = time.Since(begin)
	next := make(chan string, some)
	for i := range some {
		next <- d.ports[i*(len(d.ports)-arrivals)/some]
	}
	s, err := measureTimes(ctx, pace{Window: time.Duration(some) * time.Second / arrivals}, func(ctx context.Context) (time.Duration, error) {
		return d.connect(ctx, <-next)
	})
	d.served = s.Times
	return err
}

// connect reports a port and tells how long it takes from there to ACTIVE.
func (d *idle) connect(ctx context.Context, port string) (time.Duration, error) {
	begin := time.Now()
	if err := d.wire(ctx, port); err != nil {
		return 0, err
	}
	err := d.active.await(ctx, port)
	return time.Since(begin), err
}

func (d *idle) details(context.Context) ([]detail, error) {
	const mega = 1 << 20
	before, with, again := d.states[0], d.states[len(d.states)-2], d.states[len(d.states)-1]
	each := func(a, b int64) float64 { return ratio(float64(a-b), float64(d.count)) }
	var all []detail
	for _, f := range d.states[:len(d.states)-1] {
		all = append(all, detail{fmt.Sprintf("worker's memory in MiB with %d idle ports", f.ports), float64(f.worker) / mega})
	}
	return append(all,
		detail{"worker's memory in MiB after it was killed", float64(again.worker) / mega},
		detail{"bytes of each in berth's database", each(with.rows, before.rows)},
		detail{"bytes of each in Temporal's databases", each(with.temporal, before.temporal)},
		detail{"ms until the worker that follows a killed one is ready", milliseconds(d.up)},
		detail{"ports reported to it", float64(len(d.served))},
		detail{"ms from a port's reports to ACTIVE, p50", milliseconds(percentile(d.served, 50))},
		detail{"ms from a port's reports to ACTIVE, p99", milliseconds(percentile(d.served, 99))},
	), nil
}
