package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// figure is one measurement of bench, for example the creation of ports. To add a figure, write a function
// that opens the figure and add the figure to the variable figures.
type figure struct {
	name          string
	title         string
	baseline      string  // name of the figure with which bench compares this figure; empty: none
	singleClient  bool    // bench runs the figure with one client instead of many
	lastRoundOnly bool    // bench measures the figure in the last round only
	latencies     bool    // the report shows mean and percentiles of the measured times
	windowShare   float64 // factor for the warm-up and the window of this figure: 0.5 halves them
	open          func(context.Context, *stack) (*subject, error)
}

// subject holds the functions of an open figure; a nil function does nothing. The function that opens a
// figure registers the figure's cleanup with stack.onClose.
type subject struct {
	// the berth process to which bench sends the agents' heartbeats during each round and during details;
	// nil: no heartbeats
	agents       *api
	setUp        func(context.Context) error                 // runs before each round
	op           operation                                   // the clients repeat op during the window
	measureRound func(context.Context, pace) (sample, error) // measures a round in its own way, instead of op
	tearDown     func(context.Context) error                 // runs after each round and checks the outcome
	details      func(context.Context) ([]detail, error)     // runs once, after the last round
}

// figures lists all figures in the order in which they are measured. A baseline stands before the figures
// that bench compares with this baseline.
var figures = []figure{
	{
		name:        "noop",
		title:       "workflows that do nothing, started eagerly",
		windowShare: 1,
		open:        openNoop("Nothing", true),
	},
	{
		name:        "noop-plain",
		title:       "workflows that do nothing, started without the eager option",
		baseline:    "noop",
		windowShare: 1,
		open:        openNoop("NothingPlain", false),
	},
	{
		name:        "limit",
		title:       "workflows of one local activity that does nothing",
		baseline:    "noop",
		windowShare: 1,
		open:        openLocalActivity,
	},
	{
		name:        "ports",
		title:       "ports from POST to ACTIVE; both agents report by signal; journal entries are sent later",
		baseline:    "noop",
		windowShare: 1,
		open:        openPorts,
	},
	{
		name:        "entries",
		title:       "journal entries from POST to completed",
		baseline:    "limit",
		windowShare: 1,
		open:        openEntries(createNetworkWithPorts, 0),
	},
	{
		name:        "synchronous",
		title:       "objects of the figure entries, sent to the controller by the client itself",
		baseline:    "entries",
		windowShare: 0.5,
		open:        openSynchronous(0),
	},
	{
		name:        "entries-10ms",
		title:       "journal entries from POST to completed; the controller answers after 10 ms",
		baseline:    "limit",
		windowShare: 1,
		open:        openEntries(createNetworkWithPorts, 10*time.Millisecond),
	},
	{
		name:        "synchronous-10ms",
		title:       "objects of the figure entries-10ms, sent to the controller by the client itself",
		baseline:    "entries-10ms",
		windowShare: 0.5,
		open:        openSynchronous(10 * time.Millisecond),
	},
	{
		name:        "entries-apart",
		title:       "journal entries without dependencies",
		baseline:    "limit",
		windowShare: 1,
		open:        openEntries(createNetwork, 0),
	},
	{
		name:         "updates",
		title:        "journal entries of 100 changes of one network; one client",
		baseline:     "limit",
		singleClient: true,
		windowShare:  1,
		open:         openUpdates,
	},
	{
		name:        "creates",
		title:       "POST /networks, ten per second",
		latencies:   true,
		windowShare: 1,
		open:        openCreates(false),
	},
	{
		name:        "creates-away",
		title:       "POST /networks, ten per second, while the controller is down",
		baseline:    "creates",
		latencies:   true,
		windowShare: 1,
		open:        openCreates(true),
	},
	{
		name:          "queue",
		title:         "backlog of 5,000 journal entries, from the end of the controller's outage until all are completed",
		baseline:      "entries",
		lastRoundOnly: true,
		windowShare:   1,
		open:          openBacklog,
	},
	{
		name:         "journal",
		title:        "SQL transactions of a journal entry alone: create, attempt, outcome; one client",
		singleClient: true,
		latencies:    true,
		windowShare:  0.5,
		open:         openJournalStore(1000),
	},
	{
		name:         "journal-million",
		title:        "SQL transactions of a journal entry alone, with a million completed entries; one client",
		baseline:     "journal",
		singleClient: true,
		latencies:    true,
		windowShare:  0.5,
		open:         openJournalStore(1_000_000),
	},
	{
		name:        "ports-mirrored",
		title:       "ports from POST to ACTIVE; berth also sends the journal entries",
		baseline:    "noop",
		windowShare: 1,
		open:        openMirroredPorts,
	},
	{
		name:        "latency",
		title:       "ports, ten per second: time from the last signal until the API shows ACTIVE",
		latencies:   true,
		windowShare: 1,
		open:        openLatency,
	},
	{
		name:          "storm",
		title:         "signals to one port, until the port's row has counted all of them",
		lastRoundOnly: true,
		windowShare:   1,
		open:          openStorm,
	},
	{
		name:          "deletion",
		title:         "a port that receives 200 signals per second: from DELETE to the end of its workflow",
		lastRoundOnly: true,
		latencies:     true,
		windowShare:   1,
		open:          openDeletion,
	},
	{
		name:        "rpc-ready",
		title:       "500 ports reported by dhcp_ready_on_ports, 64 in each call, until no row has a DHCP block",
		latencies:   true,
		windowShare: 1,
		open:        openReady,
	},
	{
		name:        "rpc-up",
		title:       "500 ports reported by update_device_list, 20 in each call, until the ports are ACTIVE",
		latencies:   true,
		windowShare: 1,
		open:        openUp,
	},
	{
		name:         "port-rows",
		title:        "rows of a new port, inserted by the database driver alone, one statement for each row; one client",
		singleClient: true,
		latencies:    true,
		windowShare:  0.5,
		open:         openPortRows,
	},
	{
		name:         "port-creates",
		title:        "POST /ports; one client",
		baseline:     "port-rows",
		singleClient: true,
		latencies:    true,
		windowShare:  0.5,
		open:         openPortCreates,
	},
	{
		name:        "port-rows-many",
		title:       "rows of new ports, inserted by the database driver alone; many clients",
		latencies:   true,
		windowShare: 0.5,
		open:        openPortRows,
	},
	{
		name:        "port-creates-many",
		title:       "POST /ports; many clients",
		baseline:    "port-rows-many",
		latencies:   true,
		windowShare: 0.5,
		open:        openPortCreates,
	},
	{
		name:        "timers",
		title:       "lateness of workflows that wait for one timer, each with its own due time",
		latencies:   true,
		windowShare: 1,
		open:        openTimers(single),
	},
	{
		name:        "leases",
		title:       "lateness of the status in the row of leases, each with its own start and end",
		baseline:    "timers",
		latencies:   true,
		windowShare: 1,
		open:        openLeases(single),
	},
	{
		name:        "timers-200",
		title:       "lateness of 200 timers with the same due time",
		latencies:   true,
		windowShare: 1,
		open:        openTimers(200),
	},
	{
		name:        "leases-200",
		title:       "lateness of 200 leases with the same start and end",
		baseline:    "timers-200",
		latencies:   true,
		windowShare: 1,
		open:        openLeases(200),
	},
	{
		name:          "timers-1000",
		title:         "lateness of 1,000 timers with the same due time",
		lastRoundOnly: true,
		latencies:     true,
		windowShare:   1,
		open:          openTimers(1000),
	},
	{
		name:          "leases-1000",
		title:         "lateness of 1,000 leases with the same start and end",
		baseline:      "timers-1000",
		lastRoundOnly: true,
		latencies:     true,
		windowShare:   1,
		open:          openLeases(1000),
	},
	{
		name:        "lease-creates",
		title:       "POST /leases, ten per second, with 10,000 pending and 100,000 past leases in the database",
		latencies:   true,
		windowShare: 1,
		open:        openLeaseCreates,
	},
	{
		name:         "transactions",
		title:        "transactions of the database driver alone: begin, insert of one row, commit; one client",
		singleClient: true,
		windowShare:  0.5,
		open:         openTransactions,
	},
	{
		name:         "allocations",
		title:        "PUT /allocations/{consumer} for new consumers; one client",
		baseline:     "transactions",
		singleClient: true,
		windowShare:  0.5,
		open:         openAllocations,
	},
	{
		name:        "allocations-apart",
		title:       "PUT /allocations/{consumer} from many clients, each with its own provider",
		windowShare: 0.5,
		open:        openAllocationsApart,
	},
	{
		name:        "allocations-together",
		title:       "PUT /allocations/{consumer} from many clients with one provider",
		baseline:    "allocations-apart",
		windowShare: 0.5,
		open:        openAllocationsTogether,
	},
	{
		name:         "allocations-0",
		title:        "PUT /allocations/{consumer} for new consumers of a provider without consumers; one client",
		singleClient: true,
		latencies:    true,
		windowShare:  0.5,
		open:         openAllocationsAfter(0),
	},
	{
		name:         "allocations-100000",
		title:        "PUT /allocations/{consumer} for new consumers of a provider with 100,000 consumers; one client",
		baseline:     "allocations-0",
		singleClient: true,
		latencies:    true,
		windowShare:  0.5,
		open:         openAllocationsAfter(100_000),
	},
	{
		name:         "allocations-logged",
		title:        "the writes of allocations-0 with a log message about each request; one client",
		baseline:     "allocations-0",
		singleClient: true,
		windowShare:  0.5,
		open:         openLoggedAllocations,
	},
	{
		name:         "allocations-traced",
		title:        "the writes of allocations-0 with a trace of each request; one client",
		baseline:     "allocations-0",
		singleClient: true,
		windowShare:  0.5,
		open:         openTracedAllocations,
	},
	{
		name:         "payloads",
		title:        "payloads of Temporal, converted and converted back; one client",
		singleClient: true,
		windowShare:  0.25,
		open:         openPayloads(false),
	},
	{
		name:         "payloads-encrypted",
		title:        "the payloads of the figure payloads, encrypted and decrypted; one client",
		baseline:     "payloads",
		singleClient: true,
		windowShare:  0.25,
		open:         openPayloads(true),
	},
	{
		name:        "project",
		title:       "POST /networks of one project, ten per second",
		latencies:   true,
		windowShare: 1,
		open:        openFairness(0),
	},
	{
		name:        "project-beside-greedy",
		title:       "POST /networks of one project, ten per second, while 16 clients of another project send it as fast as they can; BERTH_PROJECT_RATE=100",
		baseline:    "project",
		latencies:   true,
		windowShare: 1,
		open:        openFairness(greedyClients),
	},
	{
		name:        "selects",
		title:       "reads of one row by its primary key, with net/http and the database driver alone",
		windowShare: 0.5,
		open:        openSelects,
	},
	{
		name:         "candidates",
		title:        "GET /allocation_candidates, limit 100, of 1,000 providers; one client",
		singleClient: true,
		latencies:    true,
		windowShare:  0.25,
		open:         openCandidates,
	},
	{
		name:         "candidates-nested",
		title:        "all allocation candidates of 7,000 nested providers; one client",
		singleClient: true,
		latencies:    true,
		windowShare:  0.25,
		open:         openNestedCandidates,
	},
	{
		name:         "candidates-1000",
		title:        "providers per second in a query of all candidates of 1,000 providers; one client",
		singleClient: true,
		latencies:    true,
		windowShare:  0.25,
		open:         openAllCandidates(1000),
	},
	{
		name:         "candidates-2000",
		title:        "providers per second in a query of all candidates of 2,000 providers; one client",
		baseline:     "candidates-1000",
		singleClient: true,
		latencies:    true,
		windowShare:  0.25,
		open:         openAllCandidates(2000),
	},
	{
		name:         "candidates-4000",
		title:        "providers per second in a query of all candidates of 4,000 providers; one client",
		baseline:     "candidates-1000",
		singleClient: true,
		latencies:    true,
		windowShare:  0.25,
		open:         openAllCandidates(4000),
	},
	{
		name:         "candidates-8000",
		title:        "providers per second in a query of all candidates of 8,000 providers; one client",
		baseline:     "candidates-1000",
		singleClient: true,
		latencies:    true,
		windowShare:  0.25,
		open:         openAllCandidates(8000),
	},
	{
		name:        "reads",
		title:       "GET /allocations/{consumer}",
		baseline:    "selects",
		windowShare: 0.5,
		open:        openReads,
	},
	{
		name:          "idle",
		title:         "idle ports, created 100 in each request, until their workflows are started",
		lastRoundOnly: true,
		windowShare:   1,
		open:          openIdle,
	},
}

func figureNames() []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// selectFigures returns the figures that a comma-separated list names, and their baselines. If the list of
// names is empty, selectFigures returns all figures.
func selectFigures(list string) ([]figure, error) {
	if list == "" {
		return figures, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown figure %q; known figures: %s",
				name, strings.Join(figureNames(), ", "))
		}
		wanted[name] = true
		wanted[figures[i].baseline] = true
	}
	return slices.DeleteFunc(slices.Clone(figures), func(f figure) bool { return !wanted[f.name] }), nil
}

// pace returns the figure's own pace. The parameter `p` has the number of clients, the warm-up and the window
// of the command line; pace adapts these values to the figure.
func (f figure) pace(p pace) pace {
	if f.singleClient {
		p.InFlight = 1
	}
	p.Warmup = time.Duration(float64(p.Warmup) * f.windowShare)
	p.Window = time.Duration(float64(p.Window) * f.windowShare)
	return p
}

// withAgents calls the function `do`. While the function `do` runs, withAgents sends heartbeats for the
// agents that the figure needs.
func (s *subject) withAgents(ctx context.Context, do func(context.Context) error) error {
	if s.agents == nil {
		return do(ctx)
	}
	return s.agents.withHeartbeats(ctx, heartbeatInterval, do)
}

// measureOnce measures one round of the figure.
func (s *subject) measureOnce(ctx context.Context, p pace) (sample, error) {
	if s.setUp != nil {
		if err := s.setUp(ctx); err != nil {
			return sample{}, err
		}
	}
	var one sample
	var err error
	if s.measureRound != nil {
		one, err = s.measureRound(ctx, p)
	} else {
		one, err = measure(ctx, p, s.op)
	}
	if err == nil && s.tearDown != nil {
		err = s.tearDown(ctx)
	}
	return one, err
}
