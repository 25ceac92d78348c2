package harness

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/workflowservice/v1"
)

// samples are the values of several quantities in the course of a run.
type samples struct {
	mu        sync.Mutex
	began     time.Time
	quantity  map[string][]point // by name
	latencies []point            // of acknowledged requests, in milliseconds
}

// point is the value of a quantity when the duration `at` has passed since the begin of the run.
type point struct {
	at    time.Duration
	value float64
}

// growingRows lists the quantities that grow with the work that is done: berth keeps these rows for longer
// than a run.
var growingRows = []string{"rows of audit_record", "rows of generation_change", "rows of lease"}

// processMetrics are the metrics of each process that must not grow, with their units in a table of samples.
var processMetrics = map[string]struct {
	name  string
	scale float64
}{
	"process_resident_memory_bytes": {"resident memory (MiB)", 1 << 20},
	"go_goroutines":                 {"goroutines", 1},
	"process_open_fds":              {"open file descriptors", 1},
}

// walBytes is a quantity that always grows; its report has the rate at which it grows.
const walBytes = "bytes of WAL"

// sampledRows counts the rows that wait for work, and rows of the objects and their histories.
const sampledRows = `
	select 'rows of note', count(*) from note
	union all select 'rows of agent_notification', count(*) from agent_notification where sent_at is null
	union all select 'rows of nova_event', count(*) from nova_event
	union all select 'rows of journal_entry, unfinished', count(*) from journal_entry where state <> 'completed'
	union all select 'rows of port', count(*) from port
	union all select 'rows of lease', count(*) from lease
	union all select 'rows of generation_change', count(*) from generation_change
	union all select 'rows of audit_record', count(*) from audit_record
	union all select 'connections to the database', count(*) from pg_stat_activity where datname = current_database()
	union all select '` + walBytes + `', (pg_current_wal_lsn() - '0/0')::bigint`

func (s *samples) add(name string, value float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quantity == nil {
		s.quantity = map[string][]point{}
	}
	s.quantity[name] = append(s.quantity[name], point{time.Since(s.began), value})
}

// addLatency adds the latency of an acknowledged request.
func (s *samples) addLatency(latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = append(s.latencies, point{time.Since(s.began), float64(latency) / float64(time.Millisecond)})
}

// sampleEvery takes samples until ctx ends. A server or process that does not answer has no value in the
// sample.
func (d *RandomDeployment) sampleEvery(ctx context.Context, interval time.Duration) {
	for ctx.Err() == nil {
		end, cancel := context.WithTimeout(ctx, 10*time.Second)
		_ = d.sampleRows(end)
		for _, p := range d.survivors() {
			_ = d.sampleProcess(end, p)
		}
		if a, err := d.client.CountWorkflow(end, &workflowservice.CountWorkflowExecutionsRequest{Query: `ExecutionStatus = "Running"`}); err == nil {
			d.samples.add("open executions", float64(a.GetCount()))
		}
		cancel()
		pause(ctx, interval)
	}
}

func (d *RandomDeployment) sampleRows(ctx context.Context) error {
	c, err := pgx.Connect(ctx, d.Postgres.URL)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.Background()) }()
	rows, err := c.Query(ctx, sampledRows)
	if err != nil {
		return err
	}
	var name string
	var value int64
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		d.samples.add(name, float64(value))
		return nil
	})
	return err
}

// sampleProcess reads the metrics of a process of berth.
func (d *RandomDeployment) sampleProcess(ctx context.Context, p *BerthProcess) error {
	metrics, err := p.metrics(ctx)
	if err != nil {
		return err
	}
	for metric, m := range processMetrics {
		d.samples.add(p.roles+": "+m.name, metrics[metric]/m.scale)
	}
	return nil
}

// survivors are the first processes of each set of roles that several processes have. A run that kills one
// process after the other spares the survivors, so that their memory is that of a long life.
func (d *RandomDeployment) survivors() (all []*BerthProcess) {
	for i, p := range d.Processes {
		same := func(o *BerthProcess) bool { return o.roles == p.roles }
		if slices.IndexFunc(d.Processes, same) == i && slices.ContainsFunc(d.Processes[i+1:], same) {
			all = append(all, p)
		}
	}
	return all
}

// trend is the course of a quantity, without the first sixth of the run, in which caches fill.
type trend struct {
	mean   float64
	growth float64 // from the begin to the end of the rest, by a line through the points
	noise  float64 // standard error of the growth
}

// trendOf fits a line to the points by least squares. Fewer than three points have no trend.
func trendOf(points []point, duration time.Duration) (t trend, ok bool) {
	points = slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.at < duration/6 })
	n := float64(len(points))
	if n < 3 {
		return trend{}, false
	}
	var at float64
	for _, p := range points {
		at += p.at.Seconds() / n
		t.mean += p.value / n
	}
	var xx, xy, residuals float64
	for _, p := range points {
		xx += (p.at.Seconds() - at) * (p.at.Seconds() - at)
		xy += (p.at.Seconds() - at) * (p.value - t.mean)
	}
	slope, span := xy/xx, (points[len(points)-1].at - points[0].at).Seconds()
	for _, p := range points {
		r := p.value - t.mean - slope*(p.at.Seconds()-at)
		residuals += r * r
	}
	t.growth, t.noise = slope*span, math.Sqrt(residuals/(n-2)/xx)*span
	return t, true
}

// grows reports whether the quantity has certainly grown by more than a tenth, and by more than a few.
func (t trend) grows() bool {
	const few = 5 // rows, connections, MiB
	return t.growth > 3*t.noise && t.growth > max(0.1*t.mean, few)
}

// p99 returns the 99th percentile of the points between two times, and 0 if there are none.
func p99(points []point, from, to time.Duration) float64 {
	var values []float64
	for _, p := range points {
		if p.at >= from && p.at < to {
			values = append(values, p.value)
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)*99/100]
}

// slowdown is the maximum ratio of the 99th percentile of latency in the last sixth of a run to that in the
// first sixth.
const slowdown = 1.2

// soakSection is the key of the report in the JSON file.
const soakSection = "soak"

// soakReport says what has become of the quantities in the course of a run.
type soakReport struct {
	Seconds  float64        `json:"duration_seconds"`
	Faults   map[string]int `json:"faults"`
	Findings int            `json:"findings"` // what berth has lost, doubled or left
	Requests int            `json:"acknowledged_requests"`
	// 99th percentiles of latency in the first and in the last sixth of the run
	First      float64  `json:"p99_ms_in_first_sixth"`
	Last       float64  `json:"p99_ms_in_last_sixth"`
	Quantities []course `json:"quantities"`
}

// course is a quantity in the course of a run. Mean, growth and noise are those of its trend.
type course struct {
	Name   string       `json:"name"`
	Mean   float64      `json:"mean"`
	Growth float64      `json:"growth"`
	Noise  float64      `json:"noise"`
	Grown  bool         `json:"grown_without_a_reason"`
	Points [][2]float64 `json:"points"` // seconds since the begin, value
}

// report returns what has become of the quantities in a run of the given duration.
func (s *samples) report(duration time.Duration) soakReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := soakReport{
		Seconds:  duration.Seconds(),
		Requests: len(s.latencies),
		First:    p99(s.latencies, 0, duration/6),
		Last:     p99(s.latencies, duration-duration/6, duration),
	}
	for _, name := range slices.Sorted(maps.Keys(s.quantity)) {
		points := s.quantity[name]
		if name == walBytes {
			name, points = "bytes of WAL a second", ratesOf(points)
		}
		t, ok := trendOf(points, duration)
		if !ok {
			continue
		}
		c := course{
			Name:   name,
			Mean:   t.mean,
			Growth: t.growth,
			Noise:  t.noise,
			Grown:  t.grows() && !slices.Contains(growingRows, name),
		}
		for _, p := range points {
			c.Points = append(c.Points, [2]float64{p.at.Seconds(), p.value})
		}
		r.Quantities = append(r.Quantities, c)
	}
	return r
}

// table returns a line for each quantity.
func (r soakReport) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %-42s %12s %12s %12s\n", "quantity", "mean", "growth", "noise")
	for _, c := range r.Quantities {
		fmt.Fprintf(&b, "  %-42s %12.1f %12.1f %12.1f\n", c.Name, c.Mean, c.Growth, c.Noise)
	}
	fmt.Fprintf(&b, "  99th percentile of latency: %.1f ms in the first sixth, %.1f ms in the last (%d requests)\n", r.First, r.Last, r.Requests)
	return b.String()
}

// grown returns what has grown without a reason.
func (r soakReport) grown() (all []string) {
	for _, c := range r.Quantities {
		if c.Grown {
			all = append(all, fmt.Sprintf("%s: mean %.1f, growth %.1f, noise %.1f", c.Name, c.Mean, c.Growth, c.Noise))
		}
	}
	if r.Last > slowdown*r.First {
		all = append(all, fmt.Sprintf("99th percentile of latency: %.1f ms in the last sixth, %.1f ms in the first", r.Last, r.First))
	}
	return all
}

// ratesOf returns the increases per second of a quantity that only grows.
func ratesOf(points []point) (rates []point) {
	for i := 1; i < len(points); i++ {
		before, p := points[i-1], points[i]
		rates = append(rates, point{p.at, (p.value - before.value) / (p.at - before.at).Seconds()})
	}
	return rates
}
