package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

// machine is where the figures come from.
type machine struct {
	Cores      int    `json:"cores"`
	System     string `json:"system"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	Temporal   string `json:"temporal"`
	DevServer  bool   `json:"dev_server"` // the figures mean nothing
}

// shown are the settings that one must know to compare two runs.
type shown struct {
	InFlight int     `json:"in_flight"`
	Rounds   int     `json:"rounds"`
	Warmup   float64 `json:"warmup_seconds"`
	Window   float64 `json:"window_seconds"`
}

// result is what came of one figure.
type result struct {
	Name    string             `json:"name"`
	Title   string             `json:"title"`
	Count   int                `json:"count"`
	Seconds float64            `json:"seconds"`
	Rate    float64            `json:"per_second"`
	Rounds  []float64          `json:"per_second_by_round"`
	Against string             `json:"against,omitempty"`
	Ratio   float64            `json:"ratio,omitempty"`
	ByCPU   float64            `json:"ratio_by_cpu,omitempty"` // the same by CPU time, which other programs disturb less
	ByMean  float64            `json:"ratio_by_mean,omitempty"`
	ByP50   float64            `json:"ratio_by_p50,omitempty"`
	ByP99   float64            `json:"ratio_by_p99,omitempty"`
	Times   *times             `json:"times_ms,omitempty"`
	CPU     map[string]float64 `json:"cpu_ms_each,omitempty"`
	Details []detail           `json:"details,omitempty"`
}

// times are what was measured of each operation, in milliseconds.
type times struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// report is everything about a run.
type report struct {
	Machine  machine  `json:"machine"`
	Settings shown    `json:"settings"`
	Figures  []result `json:"figures"`
}

// resultOf adds the rounds up and compares the figure with its peer, which is among the earlier ones.
func resultOf(f figure, rounds []sample, earlier []result) result {
	all := sum(rounds)
	r := result{Name: f.name, Title: f.title, Count: all.Count, Seconds: all.Seconds, Rate: all.rate(), CPU: all.each()}
	for _, one := range rounds {
		r.Rounds = append(r.Rounds, one.rate())
	}
	if f.times && len(all.Times) > 0 {
		r.Times = &times{Count: len(all.Times), Mean: milliseconds(mean(all.Times)), P50: milliseconds(percentile(all.Times, 50)), P99: milliseconds(percentile(all.Times, 99)), Max: milliseconds(slices.Max(all.Times))}
	}
	if i := slices.IndexFunc(earlier, func(e result) bool { return e.Name == f.against }); i >= 0 {
		peer := earlier[i]
		r.Against, r.Ratio, r.ByCPU = f.against, ratio(r.Rate, peer.Rate), ratio(peer.cpu(), r.cpu())
		if peer.Times != nil && r.Times != nil {
			r.ByMean = ratio(peer.Times.Mean, r.Times.Mean)
			r.ByP50, r.ByP99 = ratio(peer.Times.P50, r.Times.P50), ratio(peer.Times.P99, r.Times.P99)
		}
	}
	return r
}

// cpu is the CPU time of everything together, in milliseconds for each operation.
func (f result) cpu() float64 {
	var all float64
	for _, spent := range f.CPU {
		all += spent
	}
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (s settings) shown() shown {
	return shown{InFlight: s.pace.InFlight, Rounds: s.rounds, Warmup: s.pace.Warmup.Seconds(), Window: s.pace.Window.Seconds()}
}

// inspect tells what the servers say about themselves.
func inspect(ctx context.Context, s *stack) (machine, error) {
	m := machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), DevServer: s.devServer}
	if err := s.rows.QueryRow(ctx, `select current_setting('server_version')`).Scan(&m.PostgreSQL); err != nil {
		return m, err
	}
	system, err := s.temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	m.Temporal = system.GetServerVersion()
	return m, err
}

// write leaves the report in a file.
func (r report) write(file string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(raw, '\n'), 0o644)
}

// print shows the report to people.
func (r report) print(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "%d cores, %s, %s, PostgreSQL %s, Temporal %s; %d in flight, %d rounds of %gs after %gs\n", m.Cores, m.System, m.Go,
		m.PostgreSQL, m.Temporal, r.Settings.InFlight, r.Settings.Rounds, r.Settings.Window, r.Settings.Warmup)
	if m.DevServer {
		fmt.Fprintln(w, "Temporal is the dev server in memory: these figures mean nothing.")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nfigure\tper second\tratio\tby CPU\tCPU ms each\t")
	for _, f := range r.Figures {
		against, byCPU, cpu := "", "", ""
		if f.Against != "" {
			against, byCPU = fmt.Sprintf("%.2f of %s", f.Ratio, f.Against), fmt.Sprintf("%.2f", f.ByCPU)
		}
		if len(f.CPU) > 0 {
			cpu = fmt.Sprintf("%.2f", f.cpu())
		}
		fmt.Fprintf(t, "%s\t%.1f\t%s\t%s\t%s\t%s\n", f.Name, f.Rate, against, byCPU, cpu, f.Title)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	for _, f := range r.Figures {
		f.print(w)
	}
}

// print shows what else is known about a figure.
func (f result) print(w io.Writer) {
	if f.Times != nil {
		fmt.Fprintf(w, "%s: mean %.2f ms, p50 %.2f ms, p99 %.1f ms, max %.1f ms of %d\n", f.Name, f.Times.Mean, f.Times.P50, f.Times.P99, f.Times.Max, f.Times.Count)
	}
	if f.ByP50 > 0 {
		fmt.Fprintf(w, "%s: by mean %.2f, by p50 %.2f, by p99 %.2f of %s\n", f.Name, f.ByMean, f.ByP50, f.ByP99, f.Against)
	}
	for _, d := range f.Details {
		fmt.Fprintf(w, "%s: %s %.1f\n", f.Name, d.Name, d.Value)
	}
	if len(f.CPU) > 1 {
		fmt.Fprintf(w, "%s: CPU ms each:", f.Name)
		for _, who := range slices.SortedFunc(maps.Keys(f.CPU), func(a, b string) int { return int(1e6 * (f.CPU[b] - f.CPU[a])) }) {
			fmt.Fprintf(w, " %s %.2f", who, f.CPU[who])
		}
		fmt.Fprintln(w)
	}
}
