package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
)

const (
	dhcpHost = "bench-net"
	l2Host   = "bench-cmp"
)

// What the two agents report of a port.
var (
	l2Report   = contract.Report{Entity: "L2", Host: l2Host}
	dhcpReport = contract.Report{Entity: "DHCP", Host: dhcpHost}
)

// plant is where ports are made and reported.
type plant struct {
	*stack
	networks []string // one for each client
	known    *watcher // to their workflows
	active   *watcher
	made     recent[string]
}

const (
	// unknown lists ports whose workflow has not heard of them yet.
	unknown = `select workflow_id from note where workflow_id = any($1)`
	// notActive lists ports that are not ACTIVE.
	notActive = `select id::text from port where id = any($1::uuid[]) and status <> 'ACTIVE'`
)

// lookEvery is how often the rows are looked at while many are in flight: a compromise between what looking costs
// and how late it sees.
const lookEvery = 25 * time.Millisecond

func newPlant(ctx context.Context, s *stack, clients int, every time.Duration) *plant {
	return &plant{stack: s, networks: make([]string, clients),
		known: watch(ctx, s.rows, every, unknown, s.fail), active: watch(ctx, s.rows, every, notActive, s.fail)}
}

// openPorts measures a port's own way: its row, its workflow and the reports that make it ACTIVE. That it is mirrored
// to the controller meanwhile is put off, because what that costs is another figure.
func openPorts(ctx context.Context, s *stack) (*subject, error) {
	p := newPlant(ctx, s, s.clients, lookEvery)
	return &subject{
		before: func(ctx context.Context) error {
			if err := p.prepare(ctx); err != nil {
				return err
			}
			return s.hold(ctx, contract.JournalEntry)
		},
		op: p.raise,
		after: func(ctx context.Context) error {
			if err := s.release(ctx, contract.JournalEntry); err != nil {
				return err
			}
			return s.settled(ctx)
		},
		close: p.costs,
	}, nil
}

// openMirroredPorts measures all of it together.
func openMirroredPorts(ctx context.Context, s *stack) (*subject, error) {
	p := newPlant(ctx, s, s.clients, lookEvery)
	return &subject{before: p.prepare, op: p.raise, after: s.settled, close: p.costs}, nil
}

// raise brings a port from its creation over the reports of both agents to ACTIVE.
func (p *plant) raise(ctx context.Context, client int) (int, error) {
	port, err := p.plug(ctx, client)
	if err != nil {
		return 0, err
	}
	if err := p.wire(ctx, port); err != nil {
		return 0, err
	}
	p.made.add(port)
	return 1, p.active.await(ctx, port)
}

// wire reports a port for both agents, which do not wait for each other.
func (p *plant) wire(ctx context.Context, port string) error {
	var agents errgroup.Group
	for _, r := range []contract.Report{l2Report, dhcpReport} {
		agents.Go(func() error { return p.report(ctx, port, r) })
	}
	return agents.Wait()
}

// openLatency measures how long the last report of a port takes until the API shows it as ACTIVE. The other report
// has been dealt with by then.
func openLatency(ctx context.Context, s *stack) (*subject, error) {
	p := newPlant(ctx, s, 1, 2*time.Millisecond)
	return &subject{
		before: p.prepare,
		whole:  func(ctx context.Context, pace pace) (sample, error) { return measureTimes(ctx, pace, p.last) },
		after:  s.settled,
	}, nil
}

func (p *plant) last(ctx context.Context) (time.Duration, error) {
	port, err := p.plug(ctx, 0)
	if err != nil {
		return 0, err
	}
	if err := p.report(ctx, port, l2Report); err != nil {
		return 0, err
	}
	pause(ctx, 250*time.Millisecond)
	begin := time.Now()
	if err := p.report(ctx, port, dhcpReport); err != nil {
		return 0, err
	}
	err = p.api.awaitActive(ctx, port)
	return time.Since(begin), err
}

// prepare lets the agents report in, and makes each client's network with DHCP.
func (p *plant) prepare(ctx context.Context) error {
	if err := p.api.agents(ctx); err != nil || p.networks[0] != "" {
		return err
	}
	for i := range p.networks {
		var err error
		if p.networks[i], _, err = p.api.wired(ctx, fmt.Sprintf("bench-%d", i)); err != nil {
			return err
		}
	}
	return p.settled(ctx)
}

// agents reports for both agents that they live.
func (a *api) agents(ctx context.Context) error {
	if err := a.heartbeat(ctx, "DHCP agent", dhcpHost); err != nil {
		return err
	}
	return a.heartbeat(ctx, "Open vSwitch agent", l2Host)
}

// wired makes a network with DHCP and room for a million ports.
func (a *api) wired(ctx context.Context, name string) (network, subnet string, err error) {
	if network, err = a.create(ctx, "network", attributes{"name": name}); err != nil {
		return "", "", err
	}
	subnet, err = a.create(ctx, "subnet", attributes{"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/12"})
	return network, subnet, err
}

// serverPort are the attributes of the port of a new server.
func serverPort(network string) attributes {
	return attributes{"network_id": network, "binding:host_id": l2Host, "device_owner": "compute:nova", "device_id": uuid.NewString()}
}

// plug makes a port that waits for both agents, and returns when they may report: no agent is faster than that.
func (p *plant) plug(ctx context.Context, client int) (string, error) {
	port, err := p.api.create(ctx, "port", serverPort(p.networks[client]))
	if err != nil {
		return "", err
	}
	return port, p.known.await(ctx, contract.PortID(port))
}

// report signals the port's workflow as an agent does.
func (p *plant) report(ctx context.Context, port string, r contract.Report) error {
	return insist(ctx, func() error {
		return p.temporal.SignalWorkflow(ctx, contract.PortID(port), "", contract.SignalProvisioningComplete, r)
	})
}

// costs tells what Temporal did for a port and for its journal entry.
func (p *plant) costs(ctx context.Context) ([]detail, error) {
	workflows := make([]string, len(p.made.last))
	for i, id := range p.made.last {
		workflows[i] = contract.PortID(id)
	}
	details, err := histories(ctx, p.temporal, "each port", workflows)
	if err != nil {
		return nil, err
	}
	entries, err := p.entriesOf(ctx, p.made.last)
	if err != nil {
		return nil, err
	}
	more, err := histories(ctx, p.temporal, "its entry", entries)
	if err != nil {
		return nil, err
	}
	asked, err := p.asked(ctx)
	return append(append(details, more...), asked...), err
}

// asked counts what one port more for each client asks of the databases.
func (p *plant) asked(ctx context.Context) ([]detail, error) {
	if err := p.hold(ctx, contract.JournalEntry); err != nil {
		return nil, err
	}
	asked, err := p.statements(ctx, "each port", func(ctx context.Context) (int, error) { return p.together(ctx, p.raise) })
	if err != nil {
		return nil, err
	}
	return asked, errors.Join(p.release(ctx, contract.JournalEntry), p.settled(ctx))
}
