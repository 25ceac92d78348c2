package rpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// Variables that make this program a process that answers agents.
const (
	serveDatabase = "BERTH_TEST_RPC_DATABASE"
	serveBroker   = "BERTH_TEST_RPC_BROKER"
)

// serveForEver answers agents until the process is killed, and says when it begins.
func serveForEver() int {
	s, err := store.Open(context.Background(), os.Getenv(serveDatabase))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := rpc.NewServer(rpc.Options{Store: s, Brokers: []string{os.Getenv(serveBroker)}, Host: "here"})
	go func() {
		for !server.Connected() {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println("answering")
	}()
	server.Run(context.Background())
	return 0
}

// serveApart answers agents in a process of its own, and returns how to kill that.
func serveApart(t *testing.T, database, url string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveDatabase+"="+database, serveBroker+"="+url)
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
		t.Fatalf("the process that answers said %q: %v", said, err)
	}
	return kill
}

// TestCallsOfAKilledProcessAreDoneByAnother kills one of two processes while both are full of calls.
func TestCallsOfAKilledProcessAreDoneByAnother(t *testing.T) {
	t.Parallel()
	const calls = 400
	database, url := storetest.URL(t), virtualHost(t)
	s, err := store.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	kill := serveApart(t, database, url)
	serveApart(t, database, url)
	st := &site{Store: s, agent: newAgent(t, url), url: url}
	st.report(t, "DHCP agent", "net1", "new")
	st.report(t, "Open vSwitch agent", "cmp1", "new")
	st.build(t)
	ports := st.ports(t, calls)
	client := newRaw(t, url)

	for i, p := range ports {
		client.send(t, sealed(fmt.Sprintf(`{"method":"dhcp_ready_on_ports","args":{"port_ids":[%q]},"version":"1.5","_msg_id":"%d","_reply_q":%q,"_unique_id":%q}`,
			p.ID, i, client.queue, hex())))
	}
	answered := map[string]bool{}
	deadline := time.After(patience)
	for len(answered) < calls {
		select {
		case reply := <-client.replies:
			m := unsealed(t, reply.Body)
			if m["failure"] != nil {
				t.Fatalf("got %v", m)
			}
			answered[m["_msg_id"].(string)] = true
			if len(answered) == calls/10 {
				kill()
			}
		case <-deadline:
			t.Fatalf("only %d of %d calls were answered", len(answered), calls)
		}
	}

	for _, p := range ports {
		now, err := s.Port(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if left := now.Standing().Remaining(); len(left) != 1 || left[0] != network.L2 {
			t.Fatalf("port %s, which was reported, waits for %v", p.ID, left)
		}
	}
}

func unsealed(t *testing.T, body []byte) (m map[string]any) {
	t.Helper()
	var e map[string]string
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(e["oslo.message"]), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEverythingOutlastsTheBroker kills RabbitMQ, which loses all of its queues with what is in them, and starts it again.
func TestEverythingOutlastsTheBroker(t *testing.T) {
	t.Parallel()
	broker := ownBroker(t)
	url := broker.URL(0)
	s := storetest.New(t)
	s.Announce()
	serve(t, s, url)
	caster := rpc.NewPublisher(rpc.Options{Store: s, Brokers: []string{url}})
	t.Cleanup(caster.Close)
	runs(t, caster.Run)
	st := &site{Store: s, agent: newAgent(t, url), url: url}
	st.listen(t, "dhcp_agent", "net1", "1.0")
	st.report(t, "DHCP agent", "net1", "new")
	st.report(t, "Open vSwitch agent", "cmp1", "new")
	st.build(t)
	before := st.ports(t, 1)[0]
	st.told(t, caster)
	st.hears(t, "port_create_end", before.ID)
	eventually(t, "it is connected", caster.Connected)

	broker.Kill()
	eventually(t, "the loss is noticed", func() bool { return !caster.Connected() })
	meanwhile := st.ports(t, 1)[0]
	due, err := st.Announcements(t.Context(), st.network.ID, 100)
	if err != nil || len(due) == 0 {
		t.Fatalf("of a port that is made meanwhile %d are told: %v", len(due), err)
	}
	if told, err := caster.Publish(t.Context(), due); err == nil || len(told) > 0 {
		t.Errorf("told %v while the broker is away", told)
	}
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	eventually(t, "what may be lost is told again", func() bool {
		due, err := st.Announcements(t.Context(), st.network.ID, 100)
		return err == nil && len(due) > 0 && due[0].ID < 3
	})
	eventually(t, "both ports are told of", func() bool { // the agent's own way back to the broker takes its time
		due, err := st.Announcements(t.Context(), st.network.ID, 100)
		if err != nil {
			t.Fatal(err)
		}
		told, err := caster.Publish(t.Context(), due)
		if err := st.SettleAnnouncements(t.Context(), told); err != nil {
			t.Fatal(err)
		}
		return err == nil
	})
	st.hears(t, "port_create_end", before.ID, meanwhile.ID)
	eventually(t, "a report is taken, if need be the second time as agents send it", func() bool {
		return st.ask(t, map[string]any{"topic": "q-plugin", "method": "dhcp_ready_on_ports", "version": "1.5",
			"args": map[string]any{"port_ids": []uuid.UUID{before.ID}}}).Failure == ""
	})
}

// hears waits until the agent has heard such messages of all of these, whatever else it hears.
func (a *agent) hears(t *testing.T, method string, ids ...uuid.UUID) {
	t.Helper()
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id.String()] = true
	}
	deadline := time.After(patience)
	for len(missing) > 0 {
		select {
		case h := <-a.heard:
			for id := range missing {
				if h.Method == method && strings.Contains(string(h.Args), id) {
					delete(missing, id)
				}
			}
		case <-deadline:
			t.Fatalf("no %s of %v is heard", method, missing)
		}
	}
}

// TestBrokersAreBelievedByTheirAuthority speaks TLS with a broker.
func TestBrokersAreBelievedByTheirAuthority(t *testing.T) {
	t.Parallel()
	broker := ownBroker(t)
	trust, err := rpc.TLSConfig(broker.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.New(t)
	s.Announce()
	options := rpc.Options{Store: s, Brokers: []string{broker.SecureURL(0)}, Host: "here", TLS: trust}
	server := rpc.NewServer(options)
	runs(t, server.Run)
	eventually(t, "the server is connected", server.Connected)
	caster := rpc.NewPublisher(options)
	t.Cleanup(caster.Close)
	runs(t, caster.Run)
	eventually(t, "the caster is connected", caster.Connected)
	st := &site{Store: s, agent: newAgent(t, broker.URL(0)), url: broker.URL(0)}
	st.report(t, "DHCP agent", "net1", "new")

	options.TLS = nil // the system does not know that authority
	stranger := rpc.NewPublisher(options)
	t.Cleanup(stranger.Close)
	told, err := stranger.Publish(t.Context(), []network.Announcement{{Kind: network.AboutTunnel, Data: []byte(`{"Type":"vxlan","IP":"10.0.0.1"}`)}})
	if len(told) > 0 || err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("told %v, %v", told, err)
	}
	if _, err := rpc.TLSConfig(os.Args[0]); err == nil {
		t.Error("a file without a certificate is one")
	}
}
