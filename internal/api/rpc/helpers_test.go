package rpc_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/rpc"
	"berth/internal/devstack"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// maxWait is how long a test waits for a condition before it fails. maxWait is so long that tests also pass
// on a slow machine.
const maxWait = 10 * time.Minute

// virtualHosts is the number of virtual hosts of the shared broker. Each test uses a virtual host as if it
// were a broker of its own.
const virtualHosts = 116

var (
	broker           *devstack.RabbitMQ
	usedVirtualHosts atomic.Int64 // how many virtual hosts tests use
)

func TestMain(m *testing.M) {
	if os.Getenv(envServerDatabase) != "" {
		os.Exit(runServerProcess())
	}
	os.Exit(runWithBroker(m))
}

// startOwnBroker starts a RabbitMQ server that only one test uses, so that the test may kill this server.
func startOwnBroker(t *testing.T) *devstack.RabbitMQ {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-test-") // t.TempDir is too long for a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := devstack.StartRabbitMQ(t.Context(), dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Kill)
	return own
}

// runUntilEnd runs a function in the background until the test ends.
func runUntilEnd(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// runWithBroker runs all tests of the package with one shared RabbitMQ.
func runWithBroker(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if broker, err = devstack.StartRabbitMQ(context.Background(), dir, virtualHosts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer broker.Kill()
	return storetest.Main(m)
}

// newVirtualHost returns the URL of a RabbitMQ virtual host that no other test uses.
func newVirtualHost(t *testing.T) string {
	t.Helper()
	n := int(usedVirtualHosts.Add(1)) - 1
	if n >= virtualHosts {
		t.Fatalf("want an unused virtual host of RabbitMQ, but other tests use all %d virtual hosts",
			virtualHosts)
	}
	return broker.URL(n)
}

// startServer starts an RPC server, which runs until the test ends. startServer waits until the server is
// connected with RabbitMQ.
func startServer(t *testing.T, s *store.Store, url string) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	server := rpc.NewServer(rpc.Options{
		Store:   s.Network,
		Agents:  s.Agents,
		Brokers: []string{url},
		Host:    "here",
		Metrics: registry,
	})
	runUntilEnd(t, server.Run)
	eventually(t, "the server is connected", server.Connected)
	return registry
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf(
				"wait until %s: want this condition to become true, but it is still false after %s",
				what,
				maxWait,
			)
		}
	}
}
