package main

import (
	"context"
	"time"

	"berth/internal/contract"
)

// idle is a great many ports that nobody reports.
type idle struct {
	*plant
	count  int
	ports  []string
	states []footprint     // before, with all, and after a restart
	up     time.Duration   // from the restart until it was ready
	served []time.Duration // from the reports of a port after that to ACTIVE
}

// footprint is what berth takes at one moment, in bytes.
type footprint struct {
	worker, rows, temporal int64
}

// openIdle measures what many open ports cost that wait for their agents: memory, room in the databases, and how soon
// a restarted worker takes the first report of one of them. Nothing is mirrored meanwhile.
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

// perRequest is how many ports one request makes.
const perRequest = 100

func (d *idle) measure(ctx context.Context, _ pace) (sample, error) {
	if err := d.look(ctx); err != nil {
		return sample{}, err
	}
	before, err := spent()
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	for left := d.count; left > 0; left -= perRequest {
		if err := d.make(ctx, min(left, perRequest)); err != nil {
			return sample{}, err
		}
	}
	one := sample{Count: d.count, Seconds: time.Since(begin).Seconds()}
	after, err := spent()
	if err != nil {
		return one, err
	}
	one.CPU = after.since(before)
	if err := d.look(ctx); err != nil {
		return one, err
	}
	return one, d.restart(ctx)
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
	for i, p := range made.Ports {
		d.ports, workflows[i] = append(d.ports, p.ID), contract.PortID(p.ID)
	}
	return d.known.await(ctx, workflows...)
}

func (d *idle) look(ctx context.Context) error {
	var f footprint
	var err error
	if f.worker, err = d.api.resident(); err != nil {
		return err
	}
	d.states = append(d.states, f)
	return d.rows.QueryRow(ctx, `
		select pg_database_size(current_database()), coalesce((select sum(pg_database_size(datname)) from pg_database where datname like 'temporal%'), 0)`).
		Scan(&d.states[len(d.states)-1].rows, &d.states[len(d.states)-1].temporal)
}

// restart ends berth, starts it again, and has one of the first ports and one of the last reported.
func (d *idle) restart(ctx context.Context) error {
	d.api.stop()
	begin := time.Now()
	if err := d.boot(ctx, d.api); err != nil {
		return err
	}
	d.up = time.Since(begin)
	for _, port := range []string{d.ports[0], d.ports[len(d.ports)-1]} {
		begin := time.Now()
		for _, r := range []contract.Report{l2Report, dhcpReport} {
			if err := d.report(ctx, port, r); err != nil {
				return err
			}
		}
		if err := d.api.awaitActive(ctx, port); err != nil {
			return err
		}
		d.served = append(d.served, time.Since(begin))
	}
	return d.look(ctx)
}

func (d *idle) details(context.Context) ([]detail, error) {
	const mega = 1 << 20
	before, with, again := d.states[0], d.states[1], d.states[2]
	each := func(a, b int64) float64 { return ratio(float64(a-b), float64(d.count)) }
	return []detail{
		{"idle ports", float64(d.count)},
		{"worker's memory in MiB before", float64(before.worker) / mega},
		{"worker's memory in MiB with all of them", float64(with.worker) / mega},
		{"worker's memory in MiB after a restart", float64(again.worker) / mega},
		{"bytes of each in berth's database", each(with.rows, before.rows)},
		{"bytes of each in Temporal's databases", each(with.temporal, before.temporal)},
		{"ms until a restarted worker is ready", milliseconds(d.up)},
		{"ms from the reports of the oldest port after that to ACTIVE", milliseconds(d.served[0])},
		{"ms from the reports of the newest to ACTIVE", milliseconds(d.served[1])},
	}, nil
}
