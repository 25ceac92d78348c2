// Package figure contains the measurements of bench, each of which bench calls a figure. To measure a figure,
// bench opens it on a stack of the package harness.
package figure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/bench/harness"
)

// Figure is one measurement of bench, for example the creation of ports. To add a figure, write a function
// that opens the figure and add the figure to the variable figures.
type Figure struct {
	Name          string
	Title         string
	Baseline      string  // name of the figure with which bench compares this figure; empty: none
	singleClient  bool    // bench runs the figure with one client instead of many
	LastRoundOnly bool    // bench measures the figure in the last round only
	Latencies     bool    // the report shows mean and percentiles of the measured times
	WindowShare   float64 // factor for the warm-up and the window of this figure: 0.5 halves them
	Open          func(context.Context, *harness.Stack) (*Subject, error)
}

// Subject holds the functions of an open figure; a nil function does nothing. The function that opens a
// figure registers the figure's cleanup with Stack.OnClose.
type Subject struct {
	// the berth process to which bench sends the agents' heartbeats during each round and during details;
	// nil: no heartbeats
	agents *harness.API
	setUp  func(context.Context) error // runs before each round
	op     harness.Operation           // the clients repeat op during the window
	// measures a round in its own way, instead of op
	MeasureRound func(context.Context, harness.Pace) (harness.Sample, error)
	tearDown     func(context.Context) error                     // runs after each round and checks the outcome
	Details      func(context.Context) ([]harness.Detail, error) // runs once, after the last round
}

// figures lists all figures in the order in which they are measured. A baseline stands before the figures
// that bench compares with this baseline.
var figures = []Figure{
	{
		Name:        "noop",
		Title:       "workflows that do nothing, started eagerly",
		WindowShare: 1,
		Open:        openNoop("Nothing", true),
	},
	{
		Name:        "noop-plain",
		Title:       "workflows that do nothing, started without the eager option",
		Baseline:    "noop",
		WindowShare: 1,
		Open:        openNoop("NothingPlain", false),
	},
	{
		Name:        "port-workflow",
		Title:       "smallest workflows of a port: start, search attributes, two signals, one local activity that does nothing",
		Baseline:    "noop",
		WindowShare: 1,
		Open:        openPortWorkflow(),
	},
	{
		Name:        "ports",
		Title:       "ports from POST to ACTIVE; both agents report by signal; journal entries are sent later",
		Baseline:    "port-workflow",
		WindowShare: 1,
		Open:        openPorts,
	},
	{
		Name:        "entry-workflow",
		Title:       "smallest workflows of a journal entry: start, search attributes, one local activity that does nothing",
		Baseline:    "noop",
		WindowShare: 1,
		Open:        openEntryWorkflow(),
	},
	{
		Name:        "entries",
		Title:       "journal entries from POST to completed",
		Baseline:    "entry-workflow",
		WindowShare: 1,
		Open:        openEntries(createNetworkWithPorts, 0),
	},
	{
		Name:        "synchronous",
		Title:       "objects of the figure entries, sent to the controller by the client itself",
		Baseline:    "entries",
		WindowShare: 0.5,
		Open:        openSynchronous(0),
	},
	{
		Name:        "entries-10ms",
		Title:       "journal entries from POST to completed; the controller answers after 10 ms",
		Baseline:    "entry-workflow",
		WindowShare: 1,
		Open:        openEntries(createNetworkWithPorts, 10*time.Millisecond),
	},
	{
		Name:        "synchronous-10ms",
		Title:       "objects of the figure entries-10ms, sent to the controller by the client itself",
		Baseline:    "entries-10ms",
		WindowShare: 0.5,
		Open:        openSynchronous(10 * time.Millisecond),
	},
	{
		Name:        "entries-apart",
		Title:       "journal entries without dependencies",
		Baseline:    "entry-workflow",
		WindowShare: 1,
		Open:        openEntries(createNetwork, 0),
	},
	{
		Name:         "updates",
		Title:        "journal entries of 100 changes of one network; one client",
		Baseline:     "entry-workflow",
		singleClient: true,
		WindowShare:  1,
		Open:         openUpdates,
	},
	{
		Name:        "creates",
		Title:       "POST /networks, ten per second",
		Latencies:   true,
		WindowShare: 1,
		Open:        openCreates(false),
	},
	{
		Name:        "creates-away",
		Title:       "POST /networks, ten per second, while the controller is down",
		Baseline:    "creates",
		Latencies:   true,
		WindowShare: 1,
		Open:        openCreates(true),
	},
	{
		Name:          "queue",
		Title:         "backlog of 5,000 journal entries, from the end of the controller's outage until all are completed",
		Baseline:      "entries",
		LastRoundOnly: true,
		WindowShare:   1,
		Open:          openBacklog,
	},
	{
		Name:         "journal",
		Title:        "SQL transactions of a journal entry alone: create, attempt, outcome; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.5,
		Open:         openJournalStore(1000),
	},
	{
		Name:         "journal-million",
		Title:        "SQL transactions of a journal entry alone, with a million completed entries; one client",
		Baseline:     "journal",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.5,
		Open:         openJournalStore(1_000_000),
	},
	{
		Name:        "ports-mirrored",
		Title:       "ports from POST to ACTIVE; berth also sends the journal entries",
		Baseline:    "port-workflow",
		WindowShare: 1,
		Open:        openMirroredPorts,
	},
	{
		Name:        "latency",
		Title:       "ports, ten per second: time from the last signal until the API shows ACTIVE",
		Latencies:   true,
		WindowShare: 1,
		Open:        openLatency,
	},
	{
		Name:          "storm",
		Title:         "signals to one port, until the port's row has counted all of them",
		LastRoundOnly: true,
		WindowShare:   1,
		Open:          openStorm,
	},
	{
		Name:          "deletion",
		Title:         "a port that receives 200 signals per second: from DELETE to the end of its workflow",
		LastRoundOnly: true,
		Latencies:     true,
		WindowShare:   1,
		Open:          openDeletion,
	},
	{
		Name:        "rpc-ready",
		Title:       "500 ports reported by dhcp_ready_on_ports, 64 in each call, until no row has a DHCP block",
		Latencies:   true,
		WindowShare: 1,
		Open:        openReady,
	},
	{
		Name:        "rpc-up",
		Title:       "500 ports reported by update_device_list, 20 in each call, until the ports are ACTIVE",
		Latencies:   true,
		WindowShare: 1,
		Open:        openUp,
	},
	{
		Name:         "port-rows",
		Title:        "rows of a new port, inserted by the database driver alone, one statement for each row; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.5,
		Open:         openPortRows,
	},
	{
		Name:         "port-creates",
		Title:        "POST /ports; one client",
		Baseline:     "port-rows",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.5,
		Open:         openPortCreates,
	},
	{
		Name:        "port-rows-many",
		Title:       "rows of new ports, inserted by the database driver alone; many clients",
		Latencies:   true,
		WindowShare: 0.5,
		Open:        openPortRows,
	},
	{
		Name:        "port-creates-many",
		Title:       "POST /ports; many clients",
		Baseline:    "port-rows-many",
		Latencies:   true,
		WindowShare: 0.5,
		Open:        openPortCreates,
	},
	{
		Name:        "timers",
		Title:       "lateness of workflows that wait for one timer, each with its own due time",
		Latencies:   true,
		WindowShare: 1,
		Open:        openTimers(single),
	},
	{
		Name:        "leases",
		Title:       "lateness of the status in the row of leases, each with its own start and end",
		Baseline:    "timers",
		Latencies:   true,
		WindowShare: 1,
		Open:        openLeases(single),
	},
	{
		Name:        "timers-200",
		Title:       "lateness of 200 timers with the same due time",
		Latencies:   true,
		WindowShare: 1,
		Open:        openTimers(200),
	},
	{
		Name:        "leases-200",
		Title:       "lateness of 200 leases with the same start and end",
		Baseline:    "timers-200",
		Latencies:   true,
		WindowShare: 1,
		Open:        openLeases(200),
	},
	{
		Name:          "timers-1000",
		Title:         "lateness of 1,000 timers with the same due time",
		LastRoundOnly: true,
		Latencies:     true,
		WindowShare:   1,
		Open:          openTimers(1000),
	},
	{
		Name:          "leases-1000",
		Title:         "lateness of 1,000 leases with the same start and end",
		Baseline:      "timers-1000",
		LastRoundOnly: true,
		Latencies:     true,
		WindowShare:   1,
		Open:          openLeases(1000),
	},
	{
		Name:        "lease-creates",
		Title:       "POST /leases, ten per second, with 10,000 pending and 100,000 past leases in the database",
		Latencies:   true,
		WindowShare: 1,
		Open:        openLeaseCreates,
	},
	{
		Name:         "transactions",
		Title:        "transactions of the database driver alone: begin, insert of one row, commit; one client",
		singleClient: true,
		WindowShare:  0.5,
		Open:         openTransactions,
	},
	{
		Name:         "allocations",
		Title:        "PUT /allocations/{consumer} for new consumers; one client",
		Baseline:     "transactions",
		singleClient: true,
		WindowShare:  0.5,
		Open:         openAllocations,
	},
	{
		Name:        "allocation-rows-apart",
		Title:       "rows of new allocations, written by the database driver alone, one statement for each consumer; many clients, each with its own provider",
		WindowShare: 0.5,
		Open:        openAllocationRows(false),
	},
	{
		Name:        "allocations-apart",
		Title:       "PUT /allocations/{consumer} from many clients, each with its own provider",
		Baseline:    "allocation-rows-apart",
		WindowShare: 0.5,
		Open:        openAllocationsApart,
	},
	{
		Name:        "allocation-rows-together",
		Title:       "rows of new allocations, written by the database driver alone, one statement for each consumer; many clients with one provider",
		WindowShare: 0.5,
		Open:        openAllocationRows(true),
	},
	{
		Name:        "allocations-together",
		Title:       "PUT /allocations/{consumer} from many clients with one provider",
		Baseline:    "allocation-rows-together",
		WindowShare: 0.5,
		Open:        openAllocationsTogether,
	},
	{
		Name:         "allocations-0",
		Title:        "PUT /allocations/{consumer} for new consumers of a provider without consumers; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.5,
		Open:         openAllocationsAfter(0),
	},
	{
		Name:         "allocations-100000",
		Title:        "PUT /allocations/{consumer} for new consumers of a provider with 100,000 consumers; one client",
		Baseline:     "allocations-0",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.5,
		Open:         openAllocationsAfter(100_000),
	},
	{
		Name:         "allocations-logged",
		Title:        "the writes of allocations-0 with a log message about each request; one client",
		Baseline:     "allocations-0",
		singleClient: true,
		WindowShare:  0.5,
		Open:         openLoggedAllocations,
	},
	{
		Name:         "allocations-traced",
		Title:        "the writes of allocations-0 with a trace of each request; one client",
		Baseline:     "allocations-0",
		singleClient: true,
		WindowShare:  0.5,
		Open:         openTracedAllocations,
	},
	{
		Name:         "payloads",
		Title:        "payloads of Temporal, converted and converted back; one client",
		singleClient: true,
		WindowShare:  0.25,
		Open:         openPayloads(false),
	},
	{
		Name:         "payloads-encrypted",
		Title:        "the payloads of the figure payloads, encrypted and decrypted; one client",
		Baseline:     "payloads",
		singleClient: true,
		WindowShare:  0.25,
		Open:         openPayloads(true),
	},
	{
		Name:        "project",
		Title:       "POST /networks of one project, ten per second",
		Latencies:   true,
		WindowShare: 1,
		Open:        openFairness(0),
	},
	{
		Name:        "project-beside-greedy",
		Title:       "POST /networks of one project, ten per second, while 16 clients of another project send it as fast as they can; BERTH_PROJECT_RATE=100",
		Baseline:    "project",
		Latencies:   true,
		WindowShare: 1,
		Open:        openFairness(greedyClients),
	},
	{
		Name:        "selects",
		Title:       "reads of one row by its primary key, with net/http and the database driver alone",
		WindowShare: 0.5,
		Open:        openSelects,
	},
	{
		Name:         "candidates",
		Title:        "GET /allocation_candidates, limit 100, of 1,000 providers; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openCandidates,
	},
	{
		Name:         "candidates-nested",
		Title:        "all allocation candidates of 7,000 nested providers; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openNestedCandidates,
	},
	{
		Name:         "candidates-1000",
		Title:        "providers per second in a query of all candidates of 1,000 providers; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openAllCandidates(1000),
	},
	{
		Name:         "candidates-2000",
		Title:        "providers per second in a query of all candidates of 2,000 providers; one client",
		Baseline:     "candidates-1000",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openAllCandidates(2000),
	},
	{
		Name:         "candidates-4000",
		Title:        "providers per second in a query of all candidates of 4,000 providers; one client",
		Baseline:     "candidates-1000",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openAllCandidates(4000),
	},
	{
		Name:         "candidates-8000",
		Title:        "providers per second in a query of all candidates of 8,000 providers; one client",
		Baseline:     "candidates-1000",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openAllCandidates(8000),
	},
	{
		Name:        "reads",
		Title:       "GET /allocations/{consumer}",
		Baseline:    "selects",
		WindowShare: 0.5,
		Open:        openReads,
	},
	{
		Name:         "selects-one",
		Title:        "the reads of the figure selects; one client",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openSelects,
	},
	{
		Name:         "console-pages",
		Title:        "pages of the console with 100,000 ports: what waits, the ports of a project, one port; one client",
		Baseline:     "selects-one",
		singleClient: true,
		Latencies:    true,
		WindowShare:  0.25,
		Open:         openConsolePages,
	},
	{
		Name:          "idle",
		Title:         "idle ports, created 100 in each request, until their workflows are started",
		LastRoundOnly: true,
		WindowShare:   1,
		Open:          openIdle,
	},
	{
		Name:          "leases-pending", // the last figure, because its leases stay
		Title:         "leases from POST until their workflows are started; each client leases a host of its own",
		LastRoundOnly: true,
		WindowShare:   0.5,
		Open:          openPendingLeases,
	},
}

// Names returns the names of all figures.
func Names() []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.Name)
	}
	return names
}

// Select returns the figures that a comma-separated list names, and their baselines. If the list of
// names is empty, Select returns all figures.
func Select(list string) ([]Figure, error) {
	if list == "" {
		return figures, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		f, err := Find(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		wanted[f.Name] = true
		wanted[f.Baseline] = true
	}
	return slices.DeleteFunc(slices.Clone(figures), func(f Figure) bool { return !wanted[f.Name] }), nil
}

// Find returns the figure with the name.
func Find(name string) (Figure, error) {
	for _, f := range figures {
		if f.Name == name {
			return f, nil
		}
	}
	return Figure{}, fmt.Errorf("unknown figure %q; known figures: %s", name, strings.Join(Names(), ", "))
}

// Pace returns the figure's own pace. The parameter `p` has the number of clients, the warm-up and the window
// of the command line; Pace adapts these values to the figure.
func (f Figure) Pace(p harness.Pace) harness.Pace {
	if f.singleClient {
		p.InFlight = 1
	}
	p.Warmup = time.Duration(float64(p.Warmup) * f.WindowShare)
	p.Window = time.Duration(float64(p.Window) * f.WindowShare)
	return p
}

// WithAgents calls the function `do`. While the function `do` runs, WithAgents sends heartbeats for the
// agents that the figure needs.
func (s *Subject) WithAgents(ctx context.Context, do func(context.Context) error) error {
	if s.agents == nil {
		return do(ctx)
	}
	return s.agents.WithHeartbeats(ctx, harness.HeartbeatInterval, do)
}

// MeasureOnce measures one round of the figure.
func (s *Subject) MeasureOnce(ctx context.Context, p harness.Pace) (harness.Sample, error) {
	if s.setUp != nil {
		if err := s.setUp(ctx); err != nil {
			return harness.Sample{}, err
		}
	}
	var one harness.Sample
	var err error
	if s.MeasureRound != nil {
		one, err = s.MeasureRound(ctx, p)
	} else {
		one, err = harness.Measure(ctx, p, s.op)
	}
	if err == nil && s.tearDown != nil {
		err = s.tearDown(ctx)
	}
	return one, err
}
