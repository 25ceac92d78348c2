package devstack

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// TemporalCluster is a Temporal server of several nodes with databases in PostgreSQL. Each node is a process
// that runs one service. The nodes find each other through the database.
type TemporalCluster struct {
	Nodes  []*TemporalNode
	shared *postgresTemporal
}

// TemporalNode is a node of a TemporalCluster.
type TemporalNode struct {
	*Temporal // Address is the address of the service
	Service   string
}

// StartTemporalCluster starts a cluster with one node for each of the services, which may contain a service
// several times, and must contain each of frontend, history, matching and worker. The folder `dir` holds the
// configurations and logs of the nodes. The nodes listen on free ports.
func StartTemporalCluster(
	ctx context.Context,
	programs TemporalPrograms,
	dir string,
	p *Postgres,
	services ...string,
) (*TemporalCluster, error) {
	shared, err := preparePostgresTemporal(ctx, programs, dir, p, dynamicConfig)
	if err != nil {
		return nil, err
	}
	c := &TemporalCluster{shared: shared, Nodes: make([]*TemporalNode, len(services))}
	var starts errgroup.Group
	for i, service := range services {
		if c.Nodes[i], err = c.newNode(i, service); err != nil {
			return nil, err
		}
		starts.Go(func() error { return c.Nodes[i].Start(ctx) })
	}
	if err := starts.Wait(); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Join starts another node, which joins the cluster.
func (c *TemporalCluster) Join(ctx context.Context, service string) (*TemporalNode, error) {
	n, err := c.newNode(len(c.Nodes), service)
	if err != nil {
		return nil, err
	}
	if err := n.Start(ctx); err != nil {
		return nil, err
	}
	c.Nodes = append(c.Nodes, n)
	return n, nil
}

// Stop ends all nodes.
func (c *TemporalCluster) Stop() {
	for _, n := range c.Nodes {
		if n != nil && n.proc != nil {
			n.Resume() // a frozen process does not end
			n.Stop()
		}
	}
}

// newNode prepares the configuration of the node with the given number.
func (c *TemporalCluster) newNode(number int, service string) (*TemporalNode, error) {
	s := *c.shared
	s.service, s.dir = service, filepath.Join(c.shared.dir, strconv.Itoa(number))
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.writeDynamicConfig(); err != nil {
		return nil, err
	}
	var err error
	if s.ports, err = freePorts(portCount); err != nil {
		return nil, err
	}
	if err := s.writeConfig(s.address("frontend")); err != nil {
		return nil, err
	}
	t := &Temporal{Address: s.address(service), options: TemporalOptions{Dir: s.dir}, command: s.command}
	t.ready = func(ctx context.Context) error {
		if service == "frontend" {
			return registered(ctx, t.Address)
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Address)
		if err != nil {
			return fmt.Errorf("connect with the service %s: %w", service, err)
		}
		return conn.Close()
	}
	return &TemporalNode{Temporal: t, Service: service}, nil
}

// Freeze stops the node with SIGSTOP: its connections stay open, and it answers nothing until Resume.
func (n *TemporalNode) Freeze() { _ = n.proc.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends the effect of Freeze.
func (n *TemporalNode) Resume() { _ = n.proc.cmd.Process.Signal(syscall.SIGCONT) }
