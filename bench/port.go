package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"berth/internal/contract"
)

const (
	dhcpHost = "bench-net"
	l2Host   = "bench-cmp"
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

func openPorts(ctx context.Context, s *stack) (*subject, error) {
	p := newPlant(ctx, s, s.clients, lookEvery)
	return &subject{
		before: p.prepare,
		op: func(ctx context.Context, client int) (int, error) {
			port, err := p.plug(ctx, client)
			if err != nil {
				return 0, err
			}
			if err := p.report(ctx, port, contract.Report{Entity: "L2", Host: l2Host}); err != nil {
				return 0, err
			}
			if err := p.report(ctx, port, contract.Report{Entity: "DHCP", Host: dhcpHost}); err != nil {
				return 0, err
			}
			p.made.add(port)
			return 1, p.active.await(ctx, port)
		},
		after: s.settled,
		close: p.costs,
	}, nil
}

// openLatency measures how long the last report of a port takes to become ACTIVE in its row. The other report has
// been dealt with by then.
func openLatency(ctx context.Context, s *stack) (*subject, error) {
	p := newPlant(ctx, s, 1, 2*time.Millisecond)
	return &subject{
		before: p.prepare,
		timed: func(ctx context.Context, _ int) (time.Duration, error) {
			port, err := p.plug(ctx, 0)
			if err != nil {
				return 0, err
			}
			if err := p.report(ctx, port, contract.Report{Entity: "L2", Host: l2Host}); err != nil {
				return 0, err
			}
			pause(ctx, 250*time.Millisecond)
			begin := time.Now()
			if err := p.report(ctx, port, contract.Report{Entity: "DHCP", Host: dhcpHost}); err != nil {
				return 0, err
			}
			err = p.active.await(ctx, port)
			return time.Since(begin), err
		},
		after: s.settled,
	}, nil
}

// prepare lets the agents report in, and makes each client's network with DHCP.
func (p *plant) prepare(ctx context.Context) error {
	for _, agent := range [][2]string{{"DHCP agent", dhcpHost}, {"Open vSwitch agent", l2Host}} {
		if err := p.api.heartbeat(ctx, agent[0], agent[1]); err != nil {
			return err
		}
	}
	if p.networks[0] != "" {
		return nil
	}
	for i := range p.networks {
		var err error
		if p.networks[i], err = p.api.create(ctx, "network", attributes{"name": fmt.Sprintf("bench-%d", i)}); err != nil {
			return err
		}
		if _, err := p.api.create(ctx, "subnet", attributes{"network_id": p.networks[i], "ip_version": 4, "cidr": "10.0.0.0/12"}); err != nil {
			return err
		}
	}
	return p.settled(ctx)
}

// plug makes a port that waits for both agents, and returns when they may report: no agent is faster than that.
func (p *plant) plug(ctx context.Context, client int) (string, error) {
	port, err := p.api.create(ctx, "port", attributes{"network_id": p.networks[client], "binding:host_id": l2Host,
		"device_owner": "compute:nova", "device_id": uuid.NewString()})
	if err != nil {
		return "", err
	}
	return port, p.known.await(ctx, contract.PortID(port))
}

// report signals the port's workflow as an agent does.
func (p *plant) report(ctx context.Context, port string, r contract.Report) error {
	return p.temporal.SignalWorkflow(ctx, contract.PortID(port), "", contract.SignalProvisioningComplete, r)
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
	return append(details, more...), err
}
