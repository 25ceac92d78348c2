package figure

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/bench/harness"
	"berth/internal/contract"
)

// idleFigure measures many ports that wait for their agents.
type idleFigure struct {
	*portFigure
	count int
	mu    sync.Mutex
	ports []string
	// measured while bench creates the ports; the last one is measured after the restart
	footprints []footprint
	readyAfter time.Duration // time from the restart of berth until berth is ready
	// time from the reports of a port until the port is ACTIVE, for each port reported after the restart
	activation []time.Duration
}

// footprint is the size in bytes of berth's process and of the databases at a certain number of idle ports.
type footprint struct {
	ports                  int
	worker, rows, temporal int64
}

// openIdle measures ports that wait for their agents: the memory of the processes and the size of the
// databases. openIdle then kills and restarts berth, and measures how soon the new process handles agents'
// reports. During this measurement, berth does not process journal entries, because openIdle defers their
// notes (outbox rows).
func openIdle(ctx context.Context, s *harness.Stack) (*Subject, error) {
	d := &idleFigure{portFigure: newPortFigure(ctx, s, 1, harness.PollInterval), count: s.IdlePorts}
	return &Subject{
		agents: s.API,
		setUp: func(ctx context.Context) error {
			if err := d.createNetworks(ctx); err != nil {
				return err
			}
			return s.DeferNotes(ctx, contract.JournalEntry)
		},
		MeasureRound: d.measureRound,
		tearDown: func(ctx context.Context) error {
			_, err := s.Rows.Exec(ctx, `
				drop trigger bench_defer on note;
				delete from note where workflow = 'JournalEntry';
				delete from journal_entry where finished_at is null`)
			return err
		},
		Details: d.details,
	}, nil
}

const (
	portsPerRequest    = 100
	concurrentRequests = 4
)

// footprintSteps are the numbers of ports at which the footprint is measured, besides the final number.
var footprintSteps = []int{1000, 5000, 10000, 20000}

func (d *idleFigure) measureRound(ctx context.Context, _ harness.Pace) (harness.Sample, error) {
	if err := d.takeFootprint(ctx); err != nil {
		return harness.Sample{}, err
	}
	before, err := harness.ReadCPUTimes()
	if err != nil {
		return harness.Sample{}, err
	}
	begin := time.Now()
	for _, n := range append(slices.DeleteFunc(slices.Clone(footprintSteps), func(n int) bool { return n >= d.count }), d.count) {
		if err := d.growTo(ctx, n); err != nil {
			return harness.Sample{}, err
		}
	}
	one := harness.Sample{Count: d.count, Seconds: time.Since(begin).Seconds()}
	after, err := harness.ReadCPUTimes()
	one.CPU = after.Since(before)
	if err != nil {
		return one, err
	}
	if err := d.killAndReport(ctx); err != nil {
		return one, err
	}
	return one, d.takeFootprint(ctx)
}

// growTo creates ports until the number of ports is n, and then measures the memory and the database sizes.
func (d *idleFigure) growTo(ctx context.Context, n int) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRequests)
	for left := n - len(d.ports); left > 0; left -= portsPerRequest {
		group.Go(func() error { return d.createPorts(within, min(left, portsPerRequest)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return d.takeFootprint(ctx)
}

// createPorts creates n ports with one request and waits until their workflows are started.
func (d *idleFigure) createPorts(ctx context.Context, n int) error {
	wanted := make([]harness.Attributes, n)
	for i := range wanted {
		wanted[i] = serverPort(d.networks[0])
	}
	var created struct{ Ports []struct{ ID string } }
	if err := d.API.Post(ctx, "/networking/v2.0/ports", map[string]any{"ports": wanted}, &created); err != nil {
		return err
	}
	workflows := make([]string, len(created.Ports))
	d.mu.Lock()
	for i, p := range created.Ports {
		d.ports, workflows[i] = append(d.ports, p.ID), contract.PortID(p.ID)
	}
	d.mu.Unlock()
	return d.started.Await(ctx, workflows...)
}

func (d *idleFigure) takeFootprint(ctx context.Context) error {
	f := footprint{ports: len(d.ports)}
	var err error
	if f.worker, err = d.API.ResidentMemory(); err != nil {
		return err
	}
	err = d.Rows.QueryRow(ctx, `
		select pg_database_size(current_database()), coalesce((select sum(pg_database_size(datname)) from pg_database where datname like 'temporal%'), 0)`).
		Scan(&f.rows, &f.temporal)
	d.footprints = append(d.footprints, f)
	return err
}

// reportPeriod is how long agents report ports after the restart of berth, at ArrivalRate ports per second.
// For about 10 s after the kill, Temporal may still send tasks to the killed process.
const reportPeriod = 10 * time.Second

// killAndReport activates the newest ports, kills the berth process immediately afterwards, starts a new
// berth process, and then sends agents' reports for some of the other ports. The reported ports are spread
// evenly over these other ports.
func (d *idleFigure) killAndReport(ctx context.Context) error {
	reported := min(int(reportPeriod.Seconds()*harness.ArrivalRate), len(d.ports)/2)
	// ports that become ACTIVE just before the kill, so that the kill interrupts work that still runs
	for i := range min(reported, harness.ArrivalRate) {
		if _, err := d.activate(ctx, d.ports[len(d.ports)-1-i]); err != nil {
			return err
		}
	}
	d.API.Kill()
	begin := time.Now()
	if err := d.Boot(ctx, d.API); err != nil {
		return err
	}
	d.readyAfter = time.Since(begin)
	next := make(chan string, reported)
	for i := range reported {
		next <- d.ports[i*(len(d.ports)-harness.ArrivalRate)/reported]
	}
	s, err := harness.MeasureTimes(
		ctx,
		harness.Pace{Window: time.Duration(reported) * time.Second / harness.ArrivalRate},
		func(ctx context.Context) (time.Duration, error) {
			return d.activate(ctx, <-next)
		},
	)
	d.activation = s.Times
	return err
}

// activate sends both agents' reports for a port and returns the time until the port is ACTIVE.
func (d *idleFigure) activate(ctx context.Context, port string) (time.Duration, error) {
	begin := time.Now()
	if err := d.reportBoth(ctx, port); err != nil {
		return 0, err
	}
	err := d.active.Await(ctx, port)
	return time.Since(begin), err
}

func (d *idleFigure) details(context.Context) ([]harness.Detail, error) {
	const mebibyte = 1 << 20
	before, full, restarted := d.footprints[0], d.footprints[len(d.footprints)-2], d.footprints[len(d.footprints)-1]
	perPort := func(a, b int64) float64 { return harness.Ratio(float64(a-b), float64(d.count)) }
	var all []harness.Detail
	for _, f := range d.footprints[:len(d.footprints)-1] {
		all = append(all, harness.Detail{
			Name:  fmt.Sprintf("worker's memory in MiB with %d idle ports", f.ports),
			Value: float64(f.worker) / mebibyte,
		})
	}
	return append(all,
		harness.Detail{Name: "worker's memory in MiB after kill and restart", Value: float64(restarted.worker) / mebibyte},
		harness.Detail{Name: "bytes of each port in berth's database", Value: perPort(full.rows, before.rows)},
		harness.Detail{Name: "bytes of each port in Temporal's databases", Value: perPort(full.temporal, before.temporal)},
		harness.Detail{Name: "ms from the restart of a killed worker until it is ready", Value: harness.Milliseconds(d.readyAfter)},
		harness.Detail{Name: "ports reported after the restart", Value: float64(len(d.activation))},
		harness.Detail{Name: "ms from a port's reports to ACTIVE, p50", Value: harness.Milliseconds(harness.Percentile(d.activation, 50))},
		harness.Detail{Name: "ms from a port's reports to ACTIVE, p99", Value: harness.Milliseconds(harness.Percentile(d.activation, 99))},
	), nil
}
