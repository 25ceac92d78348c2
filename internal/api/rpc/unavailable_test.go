package rpc_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

// sendWithin sends a message that expires after the time d, so that RabbitMQ and the server must handle the
// message before.
func (r *rawClient) sendWithin(t *testing.T, d time.Duration, message string) {
	t.Helper()
	if err := r.PublishWithContext(t.Context(), "neutron", "q-plugin", false, false, amqp.Publishing{Body: []byte(envelope(message)),
		Expiration: fmt.Sprint(d.Milliseconds())}); err != nil {
		t.Fatal(err)
	}
}

// While the database is unavailable, each call gets a failure before its timeout. After the
// outage, the server answers calls, and executes the casts that it received during the outage.
func TestServer_UnavailableDatabaseFailsCallsAndKeepsCasts(t *testing.T) {
	t.Parallel()
	postgres := storetest.NewServer(t)
	url := newVirtualHost(t)
	s := storetest.Open(t, postgres.URL)
	st := &fixture{
		Store:    s,
		agent:    newAgent(t, url),
		url:      url,
		database: postgres.SuperuserURL(),
	}
	server := rpc.NewServer(rpc.Options{
		Store:       s.Network,
		Agents:      s.Agents,
		Brokers:     []string{url},
		Host:        "here",
		MaxCallTime: 2 * time.Second,
	})
	runUntilEnd(t, server.Run)
	eventually(t, "the server is connected", server.Connected)
	st.reportAgents(t)
	st.createNetwork(t, network.VXLAN)
	client := newRawClient(t, url)
	outages := postgres.Outages()
	created := st.createPorts(t, 2*len(outages))
	for i, outage := range outages {
		t.Run(outage.Name, func(t *testing.T) {
			ports := created[2*i : 2*i+2]
			end := sync.OnceFunc(outage.End)
			defer end()
			outage.Begin()

			client.sendWithin(t, time.Hour, fmt.Sprintf(
				`{"method":"dhcp_ready_on_ports","args":{"port_ids":[%q]},"version":"1.5","_unique_id":%q}`,
				ports[0].ID,
				hexID(),
			))
			const calls = 3
			for i := range calls {
				client.sendWithin(t, time.Hour, fmt.Sprintf(
					`{"method":"dhcp_ready_on_ports","args":{"port_ids":[%q]},"version":"1.5","_msg_id":"%d","_reply_q":%q,"_unique_id":%q}`,
					ports[1].ID, i, client.queue, hexID(),
				))
			}
			for range calls {
				m := openEnvelope(t, (<-client.replies).Body)
				var failure struct{ Class, Module string }
				if err := json.Unmarshal([]byte(fmt.Sprint(m["failure"])), &failure); err != nil ||
					failure.Class != "ServiceUnavailable" ||
					failure.Module != "neutron_lib.exceptions" ||
					m["ending"] != true {
					t.Errorf(
						"receive the reply to a call during the outage: got %v, want the exception ServiceUnavailable",
						m,
					)
				}
			}
			end()

			eventually(t, "calls are answered after the outage", func() bool {
				return st.request(t, map[string]any{
					"topic":   "q-plugin",
					"method":  "dhcp_ready_on_ports",
					"version": "1.5",
					"args":    map[string]any{"port_ids": []string{ports[1].ID.String()}},
				}).Failure == ""
			})
			eventually(t, "the cast that was sent during the outage takes effect", func() bool {
				now, err := s.Network.Port(t.Context(), ports[0].ID)
				return err == nil && len(now.StatusView().Remaining()) == 1
			})
		})
	}
}
