package portstore_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// The tests of this file keep the order of locks that docs/locks.md describes. A second writer holds the lock
// that a transaction must acquire first. While the transaction waits for this lock, it must not hold the lock
// that comes later in the order.

// lock returns the SQL statement that locks a row; `more` may be "nowait".
func lock(table string, id uuid.UUID, more string) string {
	return fmt.Sprintf(`select from %s where id = '%s' for update %s`, table, id, more)
}

// sortedByID returns the two IDs in the order of PostgreSQL.
func sortedByID(a, b uuid.UUID) (lower, higher uuid.UUID) {
	if bytes.Compare(a[:], b[:]) > 0 {
		a, b = b, a
	}
	return a, b
}

// newLockFixture returns a fixture with the URL of its database.
func newLockFixture(t *testing.T) (fixture, string) {
	t.Helper()
	url := storetest.URL(t)
	fx := fixture{Store: storetest.Open(t, url), t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.heartbeat(network.DHCPAgent, net1)
	return fx.withNetwork("10.0.0.0/24"), url
}

func TestLockOrder_NetworkBeforePort(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fx fixture, port uuid.UUID) error{
		"change of a port": func(fx fixture, port uuid.UUID) error {
			_, err := fx.Network.UpdatePort(t.Context(), port, network.PortChange{Name: ptr("new")}, nil)
			return err
		},
		"change of a binding": func(fx fixture, port uuid.UUID) error {
			c := network.BindingChange{Profile: []byte(`{"a":"b"}`)}
			_, err := fx.Network.UpdateBinding(t.Context(), port, cmp1, c)
			return err
		},
		"subnet without DHCP": func(fx fixture, _ uuid.UUID) error {
			c := network.SubnetChange{DHCP: ptr(false)}
			_, err := fx.Network.UpdateSubnet(t.Context(), fx.subnet.ID, c, nil)
			return err
		},
		"removal of a network from its DHCP agent": func(fx fixture, _ uuid.UUID) error {
			agent := fx.agentOfType(network.DHCPAgent).ID
			return fx.Network.UnscheduleNetwork(t.Context(), agent, fx.network.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx, url := newLockFixture(t)
			p := fx.createPort(cmp1)

			err := storetest.NewRival(t, url).RunAgainst(func() error { return change(fx, p.ID) },
				lock("network", fx.network.ID, ""), lock("port", p.ID, "nowait"))

			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLockOrder_PortsByID(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fx fixture, lower, higher uuid.UUID) error{
		"reports of several ports": func(fx fixture, lower, higher uuid.UUID) error {
			reports := map[uuid.UUID][]network.Report{lower: {l2OnCmp1}, higher: {l2OnCmp1}}
			_, err := fx.Network.ReportPorts(t.Context(), reports)
			return err
		},
		"new subports": func(fx fixture, lower, higher uuid.UUID) error {
			trunk := fx.createTrunk(fx.createPort(""))
			subports := vlans(network.Port{ID: higher}, network.Port{ID: lower})
			_, err := fx.Network.AddSubports(t.Context(), trunk.ID, subports)
			return err
		},
		"deletion of the DHCP agent for which ports wait": func(fx fixture, _, _ uuid.UUID) error {
			return fx.Network.DeleteAgent(t.Context(), fx.agentOfType(network.DHCPAgent).ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx, url := newLockFixture(t)
			onHost := func(c *network.PortChange) { c.Host, c.DeviceID = ptr(cmp1), nil }
			lower, higher := sortedByID(fx.createPort("", onHost).ID, fx.createPort("", onHost).ID)

			err := storetest.NewRival(t, url).RunAgainst(func() error { return change(fx, lower, higher) },
				lock("port", lower, ""), lock("port", higher, "nowait"))

			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLockOrder_ParentPortBeforeSubports(t *testing.T) {
	t.Parallel()
	fx, url := newLockFixture(t)
	parent, subport := fx.createPort(""), fx.createUnownedPort()
	trunk := fx.createTrunk(parent)

	err := storetest.NewRival(t, url).RunAgainst(func() error {
		_, err := fx.Network.AddSubports(t.Context(), trunk.ID, vlans(subport))
		return err
	}, lock("port", parent.ID, ""), lock("port", subport.ID, "nowait"))

	if err != nil {
		t.Error(err)
	}
}

func TestLockOrder_AgentBeforeItsNetworksByID(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"agent", "network"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			fx, url := newLockFixture(t)
			agent := fx.agentOfType(network.DHCPAgent).ID
			lower, higher := sortedByID(fx.network.ID, fx.withNetwork("10.0.1.0/24").network.ID)
			first := map[string]uuid.UUID{"agent": agent, "network": lower}[table]

			err := storetest.NewRival(t, url).RunAgainst(func() error {
				return fx.Network.DeleteAgent(t.Context(), agent)
			}, lock(table, first, ""), lock("network", higher, "nowait"))

			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLockOrder_SecurityGroupsByID(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fx fixture, lower, higher uuid.UUID) error{
		"deletion of a group to which another refers": func(fx fixture, _, higher uuid.UUID) error {
			return fx.Network.DeleteSecurityGroup(t.Context(), higher, nil)
		},
		"groups of a port": func(fx fixture, lower, higher uuid.UUID) error {
			c := network.PortChange{SecurityGroups: &[]uuid.UUID{higher, lower}}
			_, err := fx.Network.UpdatePort(t.Context(), fx.createPort("").ID, c, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx, url := newLockFixture(t)
			draft := network.SecurityGroupChange{Project: ptr("p"), Name: ptr("web")}
			drafts := []network.SecurityGroupChange{draft, draft}
			groups, err := fx.Network.CreateSecurityGroups(t.Context(), drafts)
			if err != nil {
				t.Fatal(err)
			}
			lower, higher := sortedByID(groups[0].ID, groups[1].ID)
			rules := []network.SecurityRuleChange{{
				Project:     ptr("p"),
				Group:       &lower,
				Direction:   ptr(network.Ingress),
				EtherType:   ptr(network.IPv4),
				RemoteGroup: &higher,
			}}
			if _, err := fx.Network.CreateSecurityRules(t.Context(), rules); err != nil {
				t.Fatal(err)
			}

			err = storetest.NewRival(t, url).RunAgainst(func() error { return change(fx, lower, higher) },
				lock("security_group", lower, ""), lock("security_group", higher, "nowait"))

			if err != nil {
				t.Error(err)
			}
		})
	}
}

// lockNote returns the SQL statement that locks the note of a workflow.
func lockNote(workflow, more string) string {
	return fmt.Sprintf(`select from note where workflow_id = '%s' for update %s`, workflow, more)
}

// newNotifyingLockFixture returns a fixture whose store notifies agents, with the URL of its database.
func newNotifyingLockFixture(t *testing.T) (fixture, string) {
	t.Helper()
	fx, url := newLockFixture(t)
	fx.Network = portstore.New(fx.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	return fx, url
}

func TestLockOrder_NotesByWorkflow(t *testing.T) {
	t.Parallel()
	fx, url := newNotifyingLockFixture(t)
	lower, higher := sortedByID(fx.network.ID, fx.withNetwork("10.0.1.0/24").network.ID)
	draft := func(network uuid.UUID) network.PortChange {
		c := fx.portDraft("")
		c.Network = &network
		return c
	}
	create := func() error {
		_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{draft(higher), draft(lower)})
		return err
	}
	if err := create(); err != nil { // now both notes exist
		t.Fatal(err)
	}

	err := storetest.NewRival(t, url).RunAgainst(create,
		lockNote(contract.AgentNotificationsID(lower.String()), ""),
		lockNote(contract.AgentNotificationsID(higher.String()), "nowait"))

	if err != nil {
		t.Error(err)
	}
}

func TestLockOrder_PortsBeforeNotes(t *testing.T) {
	t.Parallel()
	fx, url := newNotifyingLockFixture(t)
	dhcp := func(c *network.PortChange) { c.DeviceOwner = ptr(network.DeviceOwnerDHCP) }
	_, last := sortedByID(fx.createPort("", dhcp).ID, fx.createPort("", dhcp).ID)

	err := storetest.NewRival(t, url).RunAgainst(func() error {
		return fx.Network.DeleteNetwork(t.Context(), fx.network.ID, nil)
	}, lock("port", last, ""), lockNote(contract.AgentNotificationsID(fx.network.ID.String()), "nowait"))

	if err != nil {
		t.Error(err)
	}
}
