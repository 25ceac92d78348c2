package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// figure is one thing that is measured. A new one is a file and a line in the table below.
type figure struct {
	name    string
	title   string
	against string // the figure that it is compared with
	alone   bool   // one client instead of many
	once    bool   // in the last round only
	times   bool   // how long each takes is shown too
	share   float64
	open    func(context.Context, *stack) (*subject, error)
}

// subject is a figure at work. Functions that are nil do nothing.
type subject struct {
	before func(context.Context) error // each round
	op     operation
	whole  func(context.Context, pace) (sample, error) // instead of op: measures by itself
	after  func(context.Context) error                 // each round: whether all is well
	close  func(context.Context) ([]detail, error)     // once, at the end
}

// detail is something else that was seen.
type detail struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// figures are all that there are, those that others are compared with before them.
var figures = []figure{
	{name: "noop", title: "workflows that do nothing, eagerly started", share: 1, open: openNoop("Nothing", true)},
	{name: "noop-plain", title: "the same, started as the SDK does by itself", against: "noop", share: 1, open: openNoop("NothingPlain", false)},
	{name: "limit", title: "the same with one local activity, which does nothing", against: "noop", share: 1, open: openLimit},
	{name: "ports", title: "ports from POST over two signals to ACTIVE, mirrored later", against: "noop", share: 1, open: openPorts},
	{name: "entries", title: "journal entries from POST to mirrored", against: "limit", share: 1, open: openEntries(plantNetwork, 0)},
	{name: "synchronous", title: "the same, each sent by its client itself", against: "entries", share: 0.5, open: openSynchronous(0)},
	{name: "entries-10ms", title: "journal entries, the controller takes 10 ms for each", against: "limit", share: 1, open: openEntries(plantNetwork, 10*time.Millisecond)},
	{name: "synchronous-10ms", title: "the same, each sent by its client itself", against: "entries-10ms", share: 0.5, open: openSynchronous(10 * time.Millisecond)},
	{name: "entries-apart", title: "journal entries that wait for nothing", against: "limit", share: 1, open: openEntries(loneNetwork, 0)},
	{name: "updates", title: "entries of 100 changes of one object; one client", against: "limit", alone: true, share: 1, open: openUpdates},
	{name: "creates", title: "POST /networks, ten a second", times: true, share: 1, open: openCreates(false)},
	{name: "creates-away", title: "the same, the controller is away", against: "creates", times: true, share: 1, open: openCreates(true)},
	{name: "queue", title: "entries of 5,000 that gathered, from the controller's return on", against: "entries", once: true, share: 1, open: openQueue},
	{name: "journal", title: "entries in the rows alone: made, taken, settled; one client", alone: true, times: true, share: 0.5, open: openKept(1000)},
	{name: "journal-million", title: "the same beside a million completed ones", against: "journal", alone: true, times: true, share: 0.5, open: openKept(1_000_000)},
	{name: "ports-mirrored", title: "ports to ACTIVE and mirrored, together", against: "noop", share: 1, open: openMirroredPorts},
	{name: "latency", title: "ports, ten a second: last signal to ACTIVE in the API", times: true, share: 1, open: openLatency},
	{name: "storm", title: "signals to one port, until the row has taken all", once: true, share: 1, open: openStorm},
	{name: "deletion", title: "a port that 200 signals a second reach: from DELETE to the end of its workflow", once: true, times: true, share: 1, open: openDeletion},
	{name: "rpc-ready", title: "500 ports that a DHCP agent reports ready over RabbitMQ, 64 a call, to their rows", times: true, share: 1, open: openReady},
	{name: "rpc-up", title: "500 ports that an Open vSwitch agent reports wired, 20 a call, to ACTIVE in their rows", times: true, share: 1, open: openUp},
	{name: "port-rows", title: "the rows of a new port, with the driver alone, one statement each; one client", alone: true, times: true, share: 0.5, open: openPortRows},
	{name: "port-creates", title: "POST /ports; one client", against: "port-rows", alone: true, times: true, share: 0.5, open: openPortCreates},
	{name: "port-rows-many", title: "the rows of new ports, many clients", times: true, share: 0.5, open: openPortRows},
	{name: "port-creates-many", title: "POST /ports, many clients", against: "port-rows-many", times: true, share: 0.5, open: openPortCreates},
	{name: "timers", title: "timers of workflows that do nothing else, each at its instant: late", times: true, share: 1, open: openTimers(single)},
	{name: "leases", title: "leases, each at its instants: start and end late, to the row's status", against: "timers", times: true, share: 1, open: openLeases(single)},
	{name: "timers-200", title: "200 timers at one instant", times: true, share: 1, open: openTimers(200)},
	{name: "leases-200", title: "200 leases at one instant", against: "timers-200", times: true, share: 1, open: openLeases(200)},
	{name: "timers-1000", title: "1,000 timers at one instant", once: true, times: true, share: 1, open: openTimers(1000)},
	{name: "leases-1000", title: "1,000 leases at one instant", against: "timers-1000", once: true, times: true, share: 1, open: openLeases(1000)},
	{name: "lease-creates", title: "POST /leases among 10,000 leases to come and 100,000 past ones, ten a second", times: true, share: 1, open: openLeaseCreates},
	{name: "transactions", title: "one row each, with the driver alone: begin, insert, commit; one client", alone: true, share: 0.5, open: openTransactions},
	{name: "allocations", title: "PUT /allocations/{consumer} of new consumers; one client", against: "transactions", alone: true, share: 0.5, open: openAllocations},
	{name: "allocations-apart", title: "the same, each client with a provider of its own", share: 0.5, open: openAllocationsApart},
	{name: "allocations-together", title: "the same, one provider for all clients", against: "allocations-apart", share: 0.5, open: openAllocationsTogether},
	{name: "selects", title: "one row by its primary key, with net/http and the driver alone", share: 0.5, open: openSelects},
	{name: "candidates", title: "100 allocation candidates of 1,000 providers; one client", alone: true, times: true, share: 0.25, open: openCandidates},
	{name: "candidates-nested", title: "all allocation candidates of 7,000 nested providers; one client", alone: true, times: true, share: 0.25, open: openNestedCandidates},
	{name: "candidates-1000", title: "providers, when all candidates of 1,000 are asked for; one client", alone: true, times: true, share: 0.25, open: openAllCandidates(1000)},
	{name: "candidates-2000", title: "the same of 2,000", against: "candidates-1000", alone: true, times: true, share: 0.25, open: openAllCandidates(2000)},
	{name: "candidates-4000", title: "the same of 4,000", against: "candidates-1000", alone: true, times: true, share: 0.25, open: openAllCandidates(4000)},
	{name: "candidates-8000", title: "the same of 8,000", against: "candidates-1000", alone: true, times: true, share: 0.25, open: openAllCandidates(8000)},
	{name: "reads", title: "GET /allocations/{consumer}", against: "selects", share: 0.5, open: openReads},
	{name: "idle", title: "idle ports made in bulk, until the workflow of each is open", once: true, share: 1, open: openIdle},
}

func figureNames() []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// choose picks figures by their names, together with those that they are compared with.
func choose(list string) ([]figure, error) {
	if list == "" {
		return figures, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown figure %q; there are %s", name, strings.Join(figureNames(), ", "))
		}
		wanted[name] = true
		wanted[figures[i].against] = true
	}
	return slices.DeleteFunc(slices.Clone(figures), func(f figure) bool { return !wanted[f.name] }), nil
}

// measureAll measures every figure in every round.
func measureAll(ctx context.Context, s settings, st *stack, say func(string, ...any)) ([]result, error) {
	subjects := make([]*subject, len(s.figures))
	samples := make([][]sample, len(s.figures))
	for i, f := range s.figures {
		var err error
		if subjects[i], err = f.open(ctx, st); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	for round := range s.rounds {
		for i, f := range s.figures {
			if f.once && round < s.rounds-1 {
				continue
			}
			one, err := subjects[i].measure(ctx, f.pace(s.pace))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			say("round %d: %s %.1f/s", round+1, f.name, one.rate())
			samples[i] = append(samples[i], one)
		}
	}
	var results []result
	for i, f := range s.figures {
		r := resultOf(f, samples[i], results)
		if closing := subjects[i].close; closing != nil {
			var err error
			if r.Details, err = closing(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// pace is the figure's own, derived from what the command line says.
func (f figure) pace(p pace) pace {
	if f.alone {
		p.InFlight = 1
	}
	p.Warmup = time.Duration(float64(p.Warmup) * f.share)
	p.Window = time.Duration(float64(p.Window) * f.share)
	return p
}

// measure is one round.
func (s *subject) measure(ctx context.Context, p pace) (sample, error) {
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return sample{}, err
		}
	}
	var one sample
	var err error
	if s.whole != nil {
		one, err = s.whole(ctx, p)
	} else {
		one, err = measure(ctx, p, s.op)
	}
	if err == nil && s.after != nil {
		err = s.after(ctx)
	}
	return one, err
}
