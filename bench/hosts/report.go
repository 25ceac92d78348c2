package main

import (
	"fmt"
	"io"
	"strings"

	"berth/bench/harness"
)

// The usual keys of the reports in the JSON file.
const (
	section     = "hosts"
	slowSection = "hosts_slow" // hosts with fewer heartbeats and new ports
)

// report is the value of a key in the JSON file.
type report struct {
	Machine  harness.Machine  `json:"machine"`
	Settings reportedSettings `json:"settings"`
	Sizes    []sizeResult     `json:"sizes"`
}

// reportedSettings are the settings that influence the results.
type reportedSettings struct {
	Interval         float64 `json:"heartbeat_interval_seconds"` // also the warm-up
	PortsPerHostHour float64 `json:"ports_per_host_and_hour"`
	Clients          int     `json:"clients"`
	Window           float64 `json:"window_seconds"`
}

func newReport(s settings) report {
	return report{Settings: reportedSettings{
		Interval:         s.interval.Seconds(),
		PortsPerHostHour: s.portsPerHostHour,
		Clients:          s.clients,
		Window:           s.window.Seconds(),
	}}
}

// sizeResult is what was measured with a number of hosts.
type sizeResult struct {
	Hosts int `json:"hosts"`
	// what berth has not kept up with: names of `loads`; empty: it has kept up with everything
	Behind     []string      `json:"not_kept_up_with"`
	Heartbeats loadResult    `json:"heartbeats"`
	Ports      loadResult    `json:"ports"` // from POST to ACTIVE
	Journal    journalResult `json:"journal_entries"`
	Silent     int           `json:"agents_not_alive"` // at the end of the window
	// cores that each part of the deployment, and other programs of the machine, have used in the window
	Cores      map[string]float64 `json:"cores"`
	OtherCores float64            `json:"other_cores"`
	// resident memory of the processes, and size of the table agent with its indexes, at the end
	APIBytes   int64 `json:"api_resident_bytes"`
	RelayBytes int64 `json:"relay_temporal_resident_bytes"`
	AgentBytes int64 `json:"agent_table_bytes"`
	// share of the updates of the table agent in the window that changed no index
	HOT float64 `json:"agent_hot_update_share"`
}

// loadResult is what a load has reached in the window. The times are in milliseconds since an operation was
// due.
type loadResult struct {
	Wanted     int     `json:"wanted"`
	Done       int     `json:"done"`
	Failed     int     `json:"failed"`
	FirstError string  `json:"first_error,omitempty"`
	WantedRate float64 `json:"wanted_per_second"`
	Rate       float64 `json:"per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
}

// journalResult counts journal entries.
type journalResult struct {
	Created    int     `json:"created"`    // in the window
	Finished   int     `json:"finished"`   // in the window
	Unfinished int     `json:"unfinished"` // at the end of the window
	Oldest     float64 `json:"oldest_unfinished_seconds"`
}

// The names of what berth may not keep up with.
const (
	behindHeartbeats = "heartbeats"
	behindPorts      = "ports"
	behindJournal    = "journal entries"
	behindAgents     = "agents that are not alive"
)

// findBehind returns what berth has not kept up with.
func (r sizeResult) findBehind() []string {
	behind := []string{}
	for _, l := range []struct {
		name string
		kept bool
	}{
		{behindHeartbeats, keptUp(r.Heartbeats.Done, r.Heartbeats.Wanted)},
		{behindPorts, keptUp(r.Ports.Done, r.Ports.Wanted)},
		{behindJournal, keptUp(r.Journal.Finished, r.Journal.Created)},
		{behindAgents, r.Silent == 0},
	} {
		if !l.kept {
			behind = append(behind, l.name)
		}
	}
	return behind
}

// keptUp reports whether 99 percent of the wanted operations were done, rounded down: one of a few may still
// run at the end of the window.
func keptUp(done, wanted int) bool { return done >= wanted*99/100 }

// verdict says whether berth has kept up with the hosts.
func (r sizeResult) verdict() string {
	if len(r.Behind) == 0 {
		return "kept up"
	}
	return "not kept up with: " + strings.Join(r.Behind, ", ")
}

// printHead prints the machine and the settings.
func (r report) printHead(w io.Writer) {
	s := r.Settings
	r.Machine.PrintHead(w, fmt.Sprintf("a heartbeat of each host every %gs, %g new ports of each host in an hour, %d clients, windows of %gs",
		s.Interval, s.PortsPerHostHour, s.Clients, s.Window))
}

const mebibyte = 1 << 20

// print prints the result of a number of hosts.
func (r sizeResult) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d hosts: %s\n", r.Hosts, r.verdict())
	for _, l := range []struct {
		name string
		loadResult
	}{{"heartbeats", r.Heartbeats}, {"ports to ACTIVE", r.Ports}} {
		fmt.Fprintf(w, "  %-16s %9.1f/s of %9.1f/s, p50 %9.1f ms, p99 %9.1f ms, %d failed\n",
			l.name, l.Rate, l.WantedRate, l.P50, l.P99, l.Failed)
		if l.FirstError != "" {
			fmt.Fprintf(w, "  %-16s first failure: %s\n", "", l.FirstError)
		}
	}
	fmt.Fprintf(w, "  %-16s %d created, %d finished, %d unfinished at the end, the oldest for %.1f s\n",
		"journal entries", r.Journal.Created, r.Journal.Finished, r.Journal.Unfinished, r.Journal.Oldest)
	fmt.Fprintf(w, "  %-16s %d not alive; table of %.1f MiB, %.0f %% of its updates change no index\n",
		"agents", r.Silent, float64(r.AgentBytes)/mebibyte, 100*r.HOT)
	fmt.Fprintf(w, "  %-16s %.0f MiB api, %.0f MiB relay,temporal\n",
		"memory", float64(r.APIBytes)/mebibyte, float64(r.RelayBytes)/mebibyte)
	const coresFormat = "  %-22s %6.2f cores\n"
	for _, p := range harness.Parts {
		fmt.Fprintf(w, coresFormat, p.Name, r.Cores[p.Name])
	}
	fmt.Fprintf(w, coresFormat, "other programs", r.OtherCores)
}
