package rpc_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// Environment variables with which the test binary runs as an RPC server process.
const (
	envServerDatabase = "BERTH_TEST_RPC_DATABASE"
	envServerBroker   = "BERTH_TEST_RPC_BROKER"
)

// runServerProcess answers RPC calls until the process is killed. When its RPC server is connected to
// RabbitMQ, runServerProcess prints a line.
func runServerProcess() int {
	s, err := store.Open(context.Background(), os.Getenv(envServerDatabase), storetest.Config())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := rpc.NewServer(rpc.Options{
		Store:   s.Network,
		Agents:  s.Agents,
		Brokers: []string{os.Getenv(envServerBroker)},
		Host:    "here",
	})
	go func() {
		for !server.Connected() {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("answering")
	}()
	server.Run(context.Background())
	return 0
}

// startServerProcess starts an RPC server in a separate process and returns a function that kills this
// process.
func startServerProcess(t *testing.T, database, url string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envServerDatabase+"="+database, envServerBroker+"="+url)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("start the server process: it printed %q, error %v; want a line", said, err)
	}
	return kill
}

// In this test, one of two RPC server processes is killed while both execute many calls.
func TestServer_CallsOfAKilledProcessAreRedelivered(t *testing.T) {
	t.Parallel()
	const calls = 400
	database, url := storetest.URL(t), newVirtualHost(t)
	s := storetest.Open(t, database)
	kill := startServerProcess(t, database, url)
	startServerProcess(t, database, url)
	st := &fixture{
		Store:    s,
		agent:    newAgent(t, url),
		url:      url,
		database: database,
	}
	st.reportAgents(t)
	st.createNetwork(t, network.VXLAN)
	ports := slices.Concat(st.createPorts(t, calls/2), st.createPorts(t, calls/2))
	client := newRawClient(t, url)

	for i, p := range ports {
		client.send(t, envelope(fmt.Sprintf(
			`{"method":"dhcp_ready_on_ports","args":{"port_ids":[%q]},"version":"1.5","_msg_id":"%d","_reply_q":%q,"_unique_id":%q}`,
			p.ID, i, client.queue, hexID(),
		)))
	}
	answered := map[string]bool{}
	deadline := time.After(maxWait)
	for len(answered) < calls {
		select {
		case reply := <-client.replies:
			m := openEnvelope(t, reply.Body)
			if m["failure"] != nil {
				t.Fatalf(
					"receive a reply while one of two processes is killed: got %v, want a reply without a failure",
					m,
				)
			}
			answered[m["_msg_id"].(string)] = true
			if len(answered) == calls/10 {
				kill()
			}
		case <-deadline:
			t.Fatalf("wait for the replies to all calls: got %d replies, want %d", len(answered), calls)
		}
	}

	for _, p := range ports {
		now, err := s.Network.Port(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if left := now.StatusView().Remaining(); len(left) != 1 || left[0] != network.L2 {
			t.Fatalf("read port %s after the DHCP agent's call: it waits for %v, want L2 alone", p.ID, left)
		}
	}
}

// The test kills RabbitMQ, so that all queues and messages are lost, and starts RabbitMQ again.
func TestPublisher_ReplaysNotificationsAfterRabbitMQRestarts(t *testing.T) {
	t.Parallel()
	broker := startOwnBroker(t)
	url := broker.URL(0)
	s := storetest.New(t)
	*s.Network = *portstore.New(s.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	startServer(t, s, url)
	publisher := rpc.NewPublisher(rpc.Options{
		Store:         s.Network,
		Agents:        s.Agents,
		Notifications: s.Notifications,
		Brokers:       []string{url},
	})
	t.Cleanup(publisher.Close)
	runUntilEnd(t, publisher.Run)
	st := &fixture{Store: s, agent: newAgent(t, url), url: url}
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	st.reportState(t, "DHCP agent", "net1", "new")
	st.reportState(t, "Open vSwitch agent", "cmp1", "new")
	st.createNetwork(t, network.VXLAN)
	before := st.createPorts(t, 1)[0]
	st.publishNetwork(t, publisher)
	st.receiveAbout(t, "port_create_end", before.ID)
	eventually(t, "the publisher is connected", publisher.Connected)

	broker.Kill()
	eventually(t, "the publisher notices the lost connection", func() bool { return !publisher.Connected() })
	meanwhile := st.createPorts(t, 1)[0]
	due, err := st.Notifications.Unsent(t.Context(), st.network.ID, 100)
	if err != nil || len(due) == 0 {
		t.Fatalf(
			"read the stored notifications about a port that was created during the outage: got %d, error %v; want at least one",
			len(due),
			err,
		)
	}
	if published, err := publisher.Publish(t.Context(), due); err == nil || len(published) > 0 {
		t.Errorf("publish while RabbitMQ is down: published %v, want none and an error", published)
	}
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	eventually(t, "the notifications that may be lost are due again", func() bool {
		due, err := st.Notifications.Unsent(t.Context(), st.network.ID, 100)
		return err == nil && len(due) > 0 && due[0].ID < 3
	})
	eventually(
		t,
		"the notifications about both ports are published",
		func() bool { // the agent reconnects only after some time
			due, err := st.Notifications.Unsent(t.Context(), st.network.ID, 100)
			if err != nil {
				t.Fatal(err)
			}
			published, err := publisher.Publish(t.Context(), due)
			if err := st.Notifications.MarkSent(t.Context(), published); err != nil {
				t.Fatal(err)
			}
			return err == nil
		},
	)
	st.receiveAbout(t, "port_create_end", before.ID, meanwhile.ID)
	eventually(t, "the agent's call succeeds, if necessary after a repetition", func() bool {
		return st.request(t, map[string]any{
			"topic":   "q-plugin",
			"method":  "dhcp_ready_on_ports",
			"version": "1.5",
			"timeout": 60,
			"args":    map[string]any{"port_ids": []uuid.UUID{before.ID}},
		}).Failure == ""
	})
}
