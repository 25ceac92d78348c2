package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
)

// TestWhyNamesWhoOwesAPortItsWord asks about a port whose agents are of every kind: alive, silent, none.
func TestWhyNamesWhoOwesAPortItsWord(t *testing.T) {
	t.Parallel()
	heard := time.Now().UTC().Add(-90 * time.Second).Format("2006-01-02 15:04:05.000000")
	silent := object{"id": uuid.NewString(), "agent_type": "Open vSwitch agent", "host": "cmp-1", "alive": false, "admin_state_up": true, "heartbeat_timestamp": heard}
	alive := object{"id": uuid.NewString(), "agent_type": "DHCP agent", "host": "net-1", "alive": true, "admin_state_up": true, "heartbeat_timestamp": heard}
	for name, c := range map[string]struct {
		host           string
		on, of         []object
		wanted, absent string
	}{
		"silent and alive": {"cmp-1", []object{silent}, []object{alive}, "L2: Open vSwitch agent on cmp-1, which reported 1m3", "DHCP: no"},
		"dhcp alive":       {"cmp-1", []object{silent}, []object{alive}, "DHCP: DHCP agent on net-1, which reported 1m3", "net-1, which reported 1m30s ago and"},
		"never reported":   {"cmp-1", nil, nil, "L2: no agent that wires ports has ever reported on cmp-1", "which reported"},
		"only DHCP there":  {"cmp-1", []object{alive}, nil, "L2: no agent that wires ports has ever reported on cmp-1", "which reported"},
		"no DHCP agent":    {"cmp-1", nil, nil, "DHCP: no DHCP agent serves its network", "which reported"},
		"no host":          {"", nil, nil, "L2: it is on no host", "has ever reported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := uuid.NewString()
			port := object{"id": id, "name": "web", "status": "DOWN", "network_id": "n", "binding:host_id": c.host,
				"berth:why": object{"sentence": "DOWN", "waiting": []object{{"for": "L2"}, {"for": "DHCP"}}}}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answers := map[string]object{"/networking/v2.0/ports/" + id: {"port": port}, "/networking/v2.0/agents": {"agents": some(c.on)},
					"/networking/v2.0/networks/n/dhcp-agents": {"agents": some(c.of)}}
				_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
			}))
			t.Cleanup(server.Close)
			b := bench{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + server.URL, "TEMPORAL_ADDRESS=127.0.0.1:1"}}
			code, said := b.starter(t, "why", "port/"+id)
			if code != 0 || !strings.Contains(said, c.wanted) || strings.Contains(said, c.absent) {
				t.Errorf("exit code %d, said:\n%s", code, said)
			}
		})
	}
}

// TestWhyTellsOfAnActivePortWhoseAgentIsSilent: its workflow has not looked since.
func TestWhyTellsOfAnActivePortWhoseAgentIsSilent(t *testing.T) {
	t.Parallel()
	const doubt = "ACTIVE: its agent was last heard of"
	for _, c := range []struct {
		status, api, workflow string
		want                  []debtor
	}{
		{"ACTIVE", "ACTIVE", "Port p is ACTIVE.", nil},
		{"ACTIVE", doubt, "Port p is ACTIVE.", []debtor{{For: "L2", Sentence: doubt}}},
		{"ACTIVE", doubt, "Port p is " + doubt + ".", nil},
		{"DOWN", "DOWN: it waits", "Port p is ACTIVE.", nil},
		{"ACTIVE", "", "Port p is ACTIVE.", nil},
	} {
		port := object{"status": c.status, because: object{"sentence": c.api}}
		if d := cmp.Diff(c.want, doubts(port, contract.Why{State: active, Sentence: c.workflow})); d != "" {
			t.Errorf("%+v: %s", c, d)
		}
	}
}

func some(all []object) []object { return append([]object{}, all...) }

// TestDoctorKnowsRabbitMQFromOthers greets what answers as RabbitMQ does, what does not, and what is not there.
func TestDoctorKnowsRabbitMQFromOthers(t *testing.T) {
	t.Parallel()
	answering := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.ReadFull(conn, make([]byte, len(greeting)))
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}()
		return "amqp://guest:secret@" + l.Addr().String() + "/"
	}
	broker := answering("\x01\x00\x00\x00\x00\x01\xff\x00\x0a\x00\x0a\x00\x09")
	stranger := answering("HTTP/1.1 400 Bad Request\r\n\r\n")
	for name, c := range map[string]struct{ brokers, state, wanted string }{
		"one":              {broker, "ok", "speaks AMQP"},
		"the second":       {"amqp://127.0.0.1:1/," + broker, "ok", "speaks AMQP"},
		"something else":   {stranger, "FAIL", "which is not AMQP"},
		"nobody":           {"amqp://127.0.0.1:1/", "FAIL", "cannot reach RabbitMQ"},
		"not the old ones": {answering("AMQP\x00\x00\x09\x01"), "FAIL", "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bench{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_RABBITMQ_URL=" + c.brokers, "TEMPORAL_ADDRESS=127.0.0.1:1"}}
			_, said := b.starter(t, "doctor")
			at := strings.Index(said, "RabbitMQ")
			if at < 6 || !strings.HasPrefix(said[at-6:], c.state) || !strings.Contains(said[at:], c.wanted) || strings.Contains(said, "secret") {
				t.Errorf("said:\n%s", said)
			}
		})
	}
}
