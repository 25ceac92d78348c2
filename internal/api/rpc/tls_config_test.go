package rpc_test

import (
	"os"
	"strings"
	"testing"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// The server and the publisher connect to RabbitMQ over TLS.
func TestTLSConfig_TrustsOnlyTheGivenAuthority(t *testing.T) {
	t.Parallel()
	broker := startOwnBroker(t)
	trust, err := rpc.TLSConfig(broker.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.New(t)
	*s.Network = *portstore.New(s.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	options := rpc.Options{
		Store:         s.Network,
		Agents:        s.Agents,
		Notifications: s.Notifications,
		Brokers:       []string{broker.SecureURL(0)},
		Host:          "here",
		TLS:           trust,
	}
	server := rpc.NewServer(options)
	runUntilEnd(t, server.Run)
	eventually(t, "the server is connected", server.Connected)
	publisher := rpc.NewPublisher(options)
	t.Cleanup(publisher.Close)
	runUntilEnd(t, publisher.Run)
	eventually(t, "the publisher is connected", publisher.Connected)
	st := &fixture{Store: s, agent: newAgent(t, broker.URL(0)), url: broker.URL(0)}
	st.reportState(t, "DHCP agent", "net1", "new")

	options.TLS = nil // the system does not trust that authority
	stranger := rpc.NewPublisher(options)
	t.Cleanup(stranger.Close)
	eventually(
		t,
		"a publication fails because of the untrusted certificate",
		func() bool { // the broker closes a connection whose handshake is slow
			published, err := stranger.Publish(t.Context(), []network.AgentNotification{
				{Resource: network.ResourceTunnel, Data: []byte(`{"Type":"vxlan","IP":"10.0.0.1"}`)},
			})
			if len(published) > 0 || err == nil {
				t.Fatalf(
					"publish to a broker with an untrusted certificate: published %v, error %v; want none and an error",
					published,
					err,
				)
			}
			return strings.Contains(err.Error(), "certificate")
		},
	)
	if _, err := rpc.TLSConfig(os.Args[0]); err == nil {
		t.Error("TLSConfig with a file that contains no certificate: got no error, want one")
	}
}
