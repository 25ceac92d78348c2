package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// hostListener is a client in a virtual host of RabbitMQ that receives what the agents of a host receive.
type hostListener struct {
	*rawClient
	messages <-chan amqp.Delivery
}

// listenAs receives the messages to all L2 agents about ports, and the messages to the DHCP agent on a host.
func listenAs(t *testing.T, url, host string) hostListener {
	t.Helper()
	c := newRawClient(t, url)
	queue, err := c.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	bind := func(exchange, kind, key string, autoDelete bool) {
		t.Helper()
		if err := c.ExchangeDeclare(exchange, kind, false, autoDelete, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.QueueBind(queue.Name, key, exchange, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	bind("neutron-vo-Port-1.7_fanout", "fanout", "", true)
	bind("neutron-vo-Port-1.9_fanout", "fanout", "", true)
	bind("q-agent-notifier-port-update_fanout", "fanout", "", true)
	bind("q-agent-notifier-port-delete_fanout", "fanout", "", true)
	bind("neutron", "topic", "dhcp_agent."+host, false)
	messages, err := c.Consume(queue.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return hostListener{c, messages}
}

// until returns the messages up to the message with the method `last`, as "METHOD ARGUMENTS".
func (l hostListener) until(t *testing.T, last string) (received []string) {
	t.Helper()
	for {
		m := openEnvelope(t, (<-l.messages).Body)
		args, err := json.Marshal(m["args"])
		if err != nil {
			t.Fatal(err)
		}
		received = append(received, m["method"].(string)+" "+string(args))
		if m["method"] == last {
			return received
		}
	}
}

// publisherFixture is a cloud whose hosts cmp1, cmp2 and net1 have a virtual host each. All agents of this
// cloud are in these virtual hosts.
func publisherFixture(
	t *testing.T,
	identities bool,
) (f *fixture, publisher *rpc.Publisher, listeners map[string]hostListener) {
	t.Helper()
	rows, main := storetest.URL(t), newVirtualHost(t)
	f = &fixture{Store: storetest.Open(t, rows), url: main, database: rows}
	*f.Network = *portstore.New(f.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	listeners = map[string]hostListener{"main": listenAs(t, main, "main")}
	for host, kind := range map[string]string{"net1": network.DHCPAgent, "cmp1": "Open vSwitch agent", "cmp2": "Open vSwitch agent"} {
		if _, err := f.Network.ReportState(t.Context(), network.AgentState{
			Type:             kind,
			Host:             host,
			Configurations:   []byte("{}"),
			ResourceVersions: map[string]string{"Port": "1.7"},
		}); err != nil {
			t.Fatal(err)
		}
		url := newVirtualHost(t)
		if _, err := f.Agents.AddVirtualHost(t.Context(), host, path.Base(url), nil); err != nil {
			t.Fatal(err)
		}
		listeners[host] = listenAs(t, url, host)
	}
	storetest.Exec(t, rows, `update agent set heartbeat_at = now() + interval '1 hour'`)
	publisher = rpc.NewPublisher(rpc.Options{
		Store:         f.Network,
		Agents:        f.Agents,
		Notifications: f.Notifications,
		Brokers:       []string{main},
		Identities:    identities,
	})
	t.Cleanup(publisher.Close)
	return f, publisher, listeners
}

// Each host gets the whole port only if it wires the port; the DHCP agent gets the port in the virtual host
// of its host.
func TestPublisher_OtherHostsGetOnlyTheAddressesOfAPort(t *testing.T) {
	t.Parallel()
	f, publisher, listeners := publisherFixture(t, false)
	f.createNetwork(t, network.VXLAN)
	port := f.createPorts(t, 1)[0]
	name := "secret"
	if _, err := f.Network.UpdatePort(t.Context(), port.ID, network.PortChange{Name: &name}, nil); err != nil {
		t.Fatal(err)
	}

	f.publishNetwork(t, publisher)
	if err := f.Network.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	f.publishNetwork(t, publisher)

	for host, l := range listeners {
		received := l.until(t, "port_delete")
		count := func(method string) (n int) {
			for _, m := range received {
				if strings.HasPrefix(m, method+" ") {
					n++
				}
			}
			return n
		}
		full := host == "cmp1" || host == "main"
		pushes := slices.DeleteFunc(slices.Clone(received), func(m string) bool {
			return !strings.HasPrefix(m, "push ") || !strings.Contains(m, "updated")
		})
		if len(pushes) == 0 || count("port_update") > 0 != full {
			t.Errorf("messages to %s: got %v, want pushes, and port_update: %t", host, received, full)
		}
		for _, m := range pushes {
			if !strings.Contains(m, port.MAC) || !strings.Contains(m, port.Addresses[0].IP.String()) ||
				!strings.Contains(m, port.SecurityGroups[0].String()) {
				t.Errorf("push to %s: got %s, want the port's MAC, address and security group", host, m)
			}
			if strings.Contains(m, name) != full || strings.Contains(m, `"host":"cmp1"`) != full ||
				strings.Contains(m, port.DeviceID) != full {
				t.Errorf("push to %s: got %s, want the name, the host and the device of the port: %t",
					host, m, full)
			}
		}
		if got, want := count("port_create_end"), map[string]int{"net1": 1}[host]; got != want {
			t.Errorf(
				"port_create_end for the DHCP agent on net1, in the virtual host of %s: got %d, want %d",
				host, got, want,
			)
		}
	}
}

// Each version that an agent registers is a message of its own, which the agents of other hosts ignore.
func TestPublisher_AHostGetsOnlyTheVersionsOfItsOwnAgents(t *testing.T) {
	t.Parallel()
	f, publisher, listeners := publisherFixture(t, false)
	if _, err := f.Network.ReportState(t.Context(), network.AgentState{
		Type:             "NIC Switch agent",
		Host:             "cmp1",
		Configurations:   []byte("{}"),
		ResourceVersions: map[string]string{"Port": "1.9"},
	}); err != nil {
		t.Fatal(err)
	}
	f.createNetwork(t, network.VXLAN)
	port := f.createPorts(t, 1)[0]
	f.publishNetwork(t, publisher)
	if err := f.Network.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	f.publishNetwork(t, publisher)

	for host, l := range listeners {
		newer := slices.ContainsFunc(l.until(t, "port_delete"), func(m string) bool {
			return strings.HasPrefix(m, "push ") && strings.Contains(m, `"versioned_object.version":"1.9"`)
		})
		if want := host == "cmp1" || host == "main"; newer != want {
			t.Errorf("push of version 1.9, which an agent on cmp1 has registered, to %s: got %t, want %t",
				host, newer, want)
		}
	}
}

func TestPublisher_PublishesOnlyInRegisteredVirtualHostsIfIdentitiesAreRequired(t *testing.T) {
	t.Parallel()
	f, publisher, listeners := publisherFixture(t, true)
	f.createNetwork(t, network.VXLAN)
	port := f.createPorts(t, 1)[0]

	f.publishNetwork(t, publisher)

	got := listeners["net1"].until(t, "port_create_end")
	if !strings.Contains(got[len(got)-1], port.ID.String()) {
		t.Errorf("receive in the virtual host of net1: got %v, want the new port", got)
	}
	main := listeners["main"]
	if err := main.PublishWithContext(t.Context(), "q-agent-notifier-port-delete_fanout", "", false, false, amqp.Publishing{Body: []byte(envelope(`{"method":"last"}`))}); err != nil {
		t.Fatal(err)
	}
	if got := main.until(t, "last"); len(got) != 1 {
		t.Errorf("receive in the virtual host of the URL: got %v, want only the message of the test", got)
	}
}

// The agents of cmp2 have declared an exchange with other arguments than berth's, so berth cannot publish
// there.
func TestPublisher_UnusableVirtualHostDelaysNoOtherHost(t *testing.T) {
	t.Parallel()
	f, publisher, listeners := publisherFixture(t, false)
	// RabbitMQ has not restarted
	if err := listeners["main"].ExchangeDeclare("berth.memento", "fanout", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, publisher.Run)
	eventually(t, "the publisher is connected", publisher.Connected)
	const exchange = "q-agent-notifier-security_group-update_fanout"
	obstacle := listeners["cmp2"]
	if err := obstacle.ExchangeDeclare(exchange, "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = obstacle.ExchangeDelete(exchange, false, false) }) // the exchange is durable
	f.createNetwork(t, network.VXLAN)
	port := f.createPorts(t, 1)[0]

	f.publishNetwork(t, publisher)

	got := listeners["net1"].until(t, "port_create_end")
	if !strings.Contains(got[len(got)-1], port.ID.String()) {
		t.Errorf("receive in the virtual host of net1: got %v, want the new port", got)
	}
	if err := obstacle.ExchangeDelete(exchange, false, false); err != nil {
		t.Fatal(err)
	}
	rows := storetest.Connect(t, f.database)
	eventually(t, "a replay is requested", func() bool { // other processes may request the same one
		var requests int
		err := rows.QueryRow(t.Context(), `select count(*) from notification_replay`).Scan(&requests)
		return err == nil && requests > 0
	})
	storetest.Exec(t, f.database, `update notification_replay set due_at = now()`)
	eventually(t, "the notifications that cmp2 missed are due again", func() bool {
		due, err := f.Notifications.Unsent(t.Context(), f.network.ID, 100)
		return err == nil && len(due) > 0
	})
	f.publishNetwork(t, publisher)
	if missing := publisher.Unreachable(); len(missing) != 0 {
		t.Errorf("unreachable virtual hosts after the repair: got %v, want none", missing)
	}
	received := 0
	for received < 2 { // before the obstacle, and by the replay
		m := obstacle.until(t, "push")
		if strings.Contains(m[len(m)-1], port.ID.String()) {
			received++
		}
	}
}

// A queue in the virtual host of cmp2 takes no message, so RabbitMQ confirms nothing there.
func TestPublisher_VirtualHostThatConfirmsNothingDelaysNoOtherHost(t *testing.T) {
	t.Parallel()
	f, publisher, listeners := publisherFixture(t, true)
	registered, err := f.Agents.VirtualHosts(t.Context(), "cmp2")
	if err != nil || len(registered) != 1 {
		t.Fatal(registered, err)
	}
	each := func(function string) {
		t.Helper()
		command := fmt.Sprintf(`rabbitmqctl eval '[sys:%s(amqqueue:get_pid(Q)) || Q <- rabbit_amqqueue:list(<<"%s">>)].'`,
			function, registered[0].Name)
		if err := broker.Control(context.Background(), command); err != nil {
			t.Fatal(err)
		}
	}
	each("suspend")
	t.Cleanup(func() { each("resume") })
	f.createNetwork(t, network.VXLAN)
	port := f.createPorts(t, 1)[0]
	due, err := f.Notifications.Unsent(t.Context(), f.network.ID, 100)
	if err != nil || len(due) == 0 {
		t.Fatal(due, err)
	}

	attempt, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	published, err := publisher.Publish(attempt, due)

	if err != nil || len(published) != len(due) {
		t.Errorf("publish %d notifications: got %d published, error %v; want all", len(due), len(published), err)
	}
	got := listeners["net1"].until(t, "port_create_end")
	if !strings.Contains(got[len(got)-1], port.ID.String()) {
		t.Errorf("receive in the virtual host of net1: got %v, want the new port", got)
	}
}

// RabbitMQ confirms the messages in the virtual host of cmp2 late, but in time.
func TestPublisher_VirtualHostThatIsSlowAgainAndAgainDelaysOthersForALimitedTime(t *testing.T) {
	t.Parallel()
	f, _, _ := publisherFixture(t, true)
	registered, err := f.Agents.VirtualHosts(t.Context(), "cmp2")
	if err != nil || len(registered) != 1 {
		t.Fatal(registered, err)
	}
	f.createNetwork(t, network.VXLAN)
	f.createPorts(t, 1)
	due, err := f.Notifications.Unsent(t.Context(), f.network.ID, 100)
	i := slices.IndexFunc(due, func(n network.AgentNotification) bool { return n.Resource == network.ResourcePort })
	if err != nil || i < 0 {
		t.Fatal(due, err)
	}
	toAll := due[i : i+1]
	type confirm struct {
		slow        []string // the hosts that are slow
		took, after time.Duration
	}
	one := []string{"cmp2"}
	quick, late := confirm{}, confirm{slow: one, took: 3500 * time.Millisecond}
	for name, c := range map[string]struct {
		confirms []confirm
		missing  bool
	}{
		"for a part of a second": {slices.Repeat([]confirm{{slow: one, took: 300 * time.Millisecond}}, 50), true},
		"for long, but rarely":   {slices.Repeat(append(slices.Repeat([]confirm{quick}, 10), confirm{slow: one, took: 6900 * time.Millisecond}), 2), true},
		"three times":            {[]confirm{late, late, late}, true},
		"twice":                  {[]confirm{late, late}, false},
		"every four minutes":     {slices.Repeat([]confirm{{slow: one, took: 3500 * time.Millisecond, after: 4 * time.Minute}}, 6), false},
		"most of three":          {slices.Repeat([]confirm{{slow: []string{"cmp1", "cmp2"}, took: 3500 * time.Millisecond}}, 5), false},
		"all":                    {slices.Repeat([]confirm{{slow: []string{"cmp1", "cmp2", "net1"}, took: 3500 * time.Millisecond}}, 5), false},
	} {
		t.Run(name, func(t *testing.T) {
			publisher := rpc.NewPublisher(rpc.Options{
				Store:         f.Network,
				Agents:        f.Agents,
				Notifications: f.Notifications,
				Brokers:       []string{f.url},
				Identities:    true,
			})
			defer publisher.Close()
			var next confirm
			now := time.Now()
			publisher.SetClock(func() time.Time { return now })
			publisher.SetConfirmTimes(func(host string) time.Duration {
				if slices.Contains(next.slow, host) {
					return next.took
				}
				return time.Millisecond
			})
			for _, next = range c.confirms {
				now = now.Add(next.after + next.took)
				if published, err := publisher.Publish(t.Context(), toAll); err != nil || len(published) != 1 {
					t.Fatalf("publish: got %v, error %v; want one notification", published, err)
				}
			}
			want := []string{}
			if c.missing {
				want = append(want, registered[0].Name)
			}
			if got := publisher.Unreachable(); !slices.Equal(got, want) {
				t.Errorf("virtual hosts without notifications: got %v, want %v", got, want)
			}
		})
	}
}

// The DHCP agent on net1 is scheduled, but has deleted its queue.
func TestPublisher_VirtualHostWithoutAQueueDelaysNoOtherHost(t *testing.T) {
	t.Parallel()
	f, publisher, listeners := publisherFixture(t, true)
	if err := listeners["net1"].Close(); err != nil { // RabbitMQ deletes the exclusive queue, too
		t.Fatal(err)
	}
	f.createNetwork(t, network.VXLAN)
	ports := f.createPorts(t, 2)

	f.publishNetwork(t, publisher)

	var received []string
	for range ports {
		pushed := listeners["cmp1"].until(t, "port_update")
		received = append(received, pushed[len(pushed)-1])
	}
	for i, p := range ports {
		if !strings.Contains(received[i], p.ID.String()) {
			t.Errorf("update %d in the virtual host of cmp1: got %s, want the port %s", i, received[i], p.ID)
		}
	}
}
