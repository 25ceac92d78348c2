package harness

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// TemporalCluster is a Temporal server of several nodes for one test.
type TemporalCluster struct {
	*devstack.TemporalCluster
	Address string // of a proxy before the frontends
}

// StartTemporalCluster starts a cluster in which each service but the worker has two nodes, and a proxy that
// passes each connection to the next frontend that accepts it.
func StartTemporalCluster(t *testing.T) *TemporalCluster {
	t.Helper()
	programs, err := devstack.TemporalServer(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(servertest.DataFolder(t)), "cluster")
	postgres, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{Dir: filepath.Join(dir, "postgres"), Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(postgres.Stop)
	c := &TemporalCluster{}
	c.TemporalCluster, err = devstack.StartTemporalCluster(t.Context(), programs, filepath.Join(dir, "temporal"), postgres,
		"frontend", "frontend", "history", "history", "matching", "matching", "worker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	c.Address = c.serveProxy(t)
	return c
}

// Of returns the nodes that run the service.
func (c *TemporalCluster) Of(service string) (nodes []*devstack.TemporalNode) {
	for _, n := range c.Nodes {
		if n.Service == service {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// serveProxy starts the proxy and returns its address.
func (c *TemporalCluster) serveProxy(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		connections.Wait()
	})
	frontends := c.Of("frontend")
	var next atomic.Int64
	connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer func() { _ = client.Close() }()
				for range frontends {
					frontend := frontends[int(next.Add(1))%len(frontends)]
					server, err := net.DialTimeout("tcp", frontend.Address, time.Second)
					if err == nil {
						join(ctx, client, server)
						return
					}
				}
			})
		}
	})
	return listener.Addr().String()
}

// join passes bytes between two connections until one of them or the context ends, and closes both.
func join(ctx context.Context, a, b net.Conn) {
	end := sync.OnceFunc(func() { _, _ = a.Close(), b.Close() })
	stop := context.AfterFunc(ctx, end)
	defer stop()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			defer end()
			_, _ = io.Copy(pair[0], pair[1])
		})
	}
	both.Wait()
}
