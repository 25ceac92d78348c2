package figure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"berth/bench/harness"
	"berth/internal/contract"
)

// The reports of the DHCP agent and the L2 agent. A port becomes ACTIVE after the DHCP agent and the L2 agent
// have reported the port.
var (
	l2Report   = contract.Report{Entity: "L2", Host: harness.L2Host}
	dhcpReport = contract.Report{Entity: "DHCP", Host: harness.DHCPHost}
)

// portFigure measures ports. portFigure creates ports, and sends the agents' reports about these ports as
// Temporal signals.
type portFigure struct {
	*harness.Stack
	networks []string            // one for each client
	started  *harness.RowWatcher // waits until port workflows are started
	active   *harness.RowWatcher // waits until ports are ACTIVE
	created  harness.Recent[string]
}

const (
	// queryPendingNotes lists the workflows for which a note (outbox row) is not delivered yet.
	queryPendingNotes = `select workflow_id from note where workflow_id = any($1)`
	// queryInactivePorts lists the ports that are not ACTIVE.
	queryInactivePorts = `select id::text from port where id = any($1::uuid[]) and status <> 'ACTIVE'`
)

func newPortFigure(ctx context.Context, s *harness.Stack, clients int, interval time.Duration) *portFigure {
	return &portFigure{
		Stack:    s,
		networks: make([]string, clients),
		started:  harness.NewRowWatcher(ctx, s.Rows, interval, queryPendingNotes, s.Fail),
		active:   harness.NewRowWatcher(ctx, s.Rows, interval, queryInactivePorts, s.Fail),
	}
}

// openPorts measures ports from their creation until they are ACTIVE. The measured time includes the
// transaction that creates the port's row, the start of the port's workflow and the reports of both agents.
// Until the window has closed, openPorts defers the notes (outbox rows) of the journal entries, because
// another measurement, the figure `entries`, measures the journal.
func openPorts(ctx context.Context, s *harness.Stack) (*Subject, error) {
	p := newPortFigure(ctx, s, s.Clients, harness.PollInterval)
	return &Subject{
		agents: s.API,
		setUp: func(ctx context.Context) error {
			if err := p.createNetworks(ctx); err != nil {
				return err
			}
			return s.DeferNotes(ctx, contract.JournalEntry)
		},
		op: p.activatePort,
		tearDown: func(ctx context.Context) error {
			if err := s.ReleaseNotes(ctx, contract.JournalEntry); err != nil {
				return err
			}
			return s.AwaitMirrored(ctx)
		},
		Details: p.details,
	}, nil
}

// openMirroredPorts measures ports from their creation until they are ACTIVE. While openMirroredPorts
// measures, berth also processes the ports' journal entries.
func openMirroredPorts(ctx context.Context, s *harness.Stack) (*Subject, error) {
	p := newPortFigure(ctx, s, s.Clients, harness.PollInterval)
	return &Subject{
		agents:   s.API,
		setUp:    p.createNetworks,
		op:       p.activatePort,
		tearDown: s.AwaitMirrored,
		Details:  p.details,
	}, nil
}

// activatePort creates a port, sends both agents' reports for the port and waits until the port is ACTIVE.
func (p *portFigure) activatePort(ctx context.Context, client int) (int, error) {
	port, err := p.createPort(ctx, client)
	if err != nil {
		return 0, err
	}
	if err := p.reportBoth(ctx, port); err != nil {
		return 0, err
	}
	p.created.Add(port)
	return 1, p.active.Await(ctx, port)
}

// reportBoth sends both agents' reports for a port at the same time.
func (p *portFigure) reportBoth(ctx context.Context, port string) error {
	var agents errgroup.Group
	for _, r := range []contract.Report{l2Report, dhcpReport} {
		agents.Go(func() error { return p.report(ctx, port, r) })
	}
	return agents.Wait()
}

// openLatency measures the time from the second agent's report about a port until the API shows the port as
// ACTIVE. When the time measurement begins, berth has already processed the first agent's report.
func openLatency(ctx context.Context, s *harness.Stack) (*Subject, error) {
	p := newPortFigure(ctx, s, 1, 2*time.Millisecond)
	return &Subject{
		agents: s.API,
		setUp:  p.createNetworks,
		MeasureRound: func(ctx context.Context, pace harness.Pace) (harness.Sample, error) {
			return harness.MeasureTimes(ctx, pace, p.lastReport)
		},
		tearDown: s.AwaitMirrored,
	}, nil
}

func (p *portFigure) lastReport(ctx context.Context) (time.Duration, error) {
	port, err := p.createPort(ctx, 0)
	if err != nil {
		return 0, err
	}
	if err := p.report(ctx, port, l2Report); err != nil {
		return 0, err
	}
	harness.Pause(ctx, 250*time.Millisecond)
	begin := time.Now()
	if err := p.report(ctx, port, dhcpReport); err != nil {
		return 0, err
	}
	err = p.API.AwaitActive(ctx, port)
	return time.Since(begin), err
}

// createNetworks creates a network with DHCP for each client. If createNetworks is called again, it does
// nothing.
func (p *portFigure) createNetworks(ctx context.Context) error {
	if p.networks[0] != "" {
		return nil
	}
	for i := range p.networks {
		var err error
		if p.networks[i], _, err = p.API.CreateDHCPNetwork(ctx, fmt.Sprintf("bench-%d", i)); err != nil {
			return err
		}
	}
	return p.AwaitMirrored(ctx)
}

// serverPort returns the attributes with which a port for a new server is created.
func serverPort(network string) harness.Attributes {
	return harness.Attributes{
		"network_id":      network,
		"binding:host_id": harness.L2Host,
		"device_owner":    "compute:nova",
		"device_id":       uuid.NewString(),
	}
}

// createPort creates a port that needs the reports of both agents, and returns after the port's workflow has
// started.
func (p *portFigure) createPort(ctx context.Context, client int) (string, error) {
	port, err := p.API.Create(ctx, "port", serverPort(p.networks[client]))
	if err != nil {
		return "", err
	}
	return port, p.started.Await(ctx, contract.PortID(port))
}

// report sends an agent's report to the port's workflow as a signal.
func (p *portFigure) report(ctx context.Context, port string, r contract.Report) error {
	return harness.RetryUnavailable(ctx, func() error {
		return p.Temporal.SignalWorkflow(ctx, contract.PortID(port), "",
			contract.SignalProvisioningComplete, r)
	})
}

// details returns what the newest ports cost in Temporal (workflow tasks and history events). details also
// returns the number of SQL statements for one port: it lets each client create one further port and counts
// the statements.
func (p *portFigure) details(ctx context.Context) ([]harness.Detail, error) {
	workflows := make([]string, len(p.created.Last))
	for i, id := range p.created.Last {
		workflows[i] = contract.PortID(id)
	}
	ofPorts, err := harness.HistoryDetails(ctx, p.Temporal, "each port", workflows)
	if err != nil {
		return nil, err
	}
	entries, err := entryWorkflows(ctx, p.Stack, p.created.Last)
	if err != nil {
		return nil, err
	}
	ofEntries, err := harness.HistoryDetails(ctx, p.Temporal, "its entry", entries)
	if err != nil {
		return nil, err
	}
	statements, err := p.countPortStatements(ctx)
	return append(append(ofPorts, ofEntries...), statements...), err
}

// countPortStatements lets each client create one further port, and counts the SQL statements for these
// ports.
func (p *portFigure) countPortStatements(ctx context.Context) ([]harness.Detail, error) {
	if err := p.DeferNotes(ctx, contract.JournalEntry); err != nil {
		return nil, err
	}
	statements, err := p.CountStatements(ctx, "each port",
		func(ctx context.Context) (int, error) { return p.RunEachClient(ctx, p.activatePort) })
	if err != nil {
		return nil, err
	}
	return statements, errors.Join(p.ReleaseNotes(ctx, contract.JournalEntry), p.AwaitMirrored(ctx))
}
