package portstore_test

import (
	"testing"
	"time"

	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

func TestBlockPolicy_NoDHCPBlocksWhenDHCPIsDisabled(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	before := fixture{Store: storetest.Open(t, url), t: t}
	before.heartbeat(network.OVSAgent, cmp1)
	before.heartbeat(network.DHCPAgent, net1)
	before = before.withNetwork("10.0.0.0/24")
	waiting := make([]network.Port, 3)
	for i := range waiting {
		waiting[i] = before.createPort(cmp1)
		before.updateStatus(waiting[i].ID, l2OnCmp1)
	}

	s := storetest.Open(t, url)
	s.Network = portstore.New(s.DB, portstore.Config{Network: networkstore.Config{NoDHCP: true}})
	fx := before
	fx.Store = s
	fx.checkPort("after a restart with NoDHCP and before ApplyBlockPolicy", waiting[0], network.Down, "DHCP@")
	if err := fx.Network.ApplyBlockPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, p := range waiting {
		fx.checkPort("after ApplyBlockPolicy with NoDHCP", p, network.Active)
	}
	fx.checkPort("a new port", fx.createPort(cmp1), network.Down, "L2@cmp-1")
	fx = fx.withNetwork("10.1.0.0/24")
	fx.createPort(cmp1)
	fx.heartbeat(network.DHCPAgent, "net-2")
	fx.checkDHCPHosts("another network", []string{}...)
}

func TestBlockPolicy_NewDeadlinesApplyToExistingBlocks(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	under := func(p network.BlockPolicy) fixture {
		s := storetest.Open(t, url)
		s.Network = portstore.New(s.DB, portstore.Config{Policy: p})
		return fixture{Store: s, t: t}
	}
	fx := under(network.BlockPolicy{"": {Limit: time.Minute, Fatal: true}})
	fx.heartbeat(network.OVSAgent, cmp1)
	fx = fx.withNetwork("10.0.0.0/24")
	ports := []network.Port{fx.createPort(cmp1), fx.createPort(cmp1)}
	storetest.Exec(t, url,
		`update block set since = since - interval '2 minutes', deadline = deadline - interval '2 minutes'`)
	for _, p := range ports {
		fx.updateStatus(p.ID)
		fx.checkPort("after the deadline", p, network.Errored, "L2@cmp-1")
	}

	for i, today := range []struct {
		policy network.BlockPolicy
		status string
	}{
		{network.BlockPolicy{"": {Limit: time.Minute}}, network.Down},
		{network.BlockPolicy{"": {Limit: time.Hour, Fatal: true}}, network.Down},
		{network.BlockPolicy{"DHCP": {Limit: time.Second, Fatal: true}}, network.Down},
		{network.BlockPolicy{"L2": {Limit: time.Second, Fatal: true}}, network.Errored},
		{nil, network.Down},
	} {
		fx.Store = under(today.policy).Store
		if err := fx.Network.ApplyBlockPolicy(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			fx.checkPort("after ApplyBlockPolicy", p, today.status, "L2@cmp-1")
			limit, fatal := today.policy.Limit(network.L2)
			b := fx.readPort(p.ID).Blocks[0]
			if b.Fatal != fatal || (b.Deadline != nil) != (limit > 0) ||
				b.Deadline != nil && !b.Deadline.Equal(b.Since.Add(limit)) {
				t.Errorf(
					"apply block policy %d: got block %+v, want the severity and the deadline of this policy",
					i,
					b,
				)
			}
		}
	}
}

func TestBlockPolicy_DeadlineStartsWhenPortIsEnabled(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	s.Network = portstore.New(s.DB,
		portstore.Config{Policy: network.BlockPolicy{network.L2: {Limit: time.Hour, Fatal: true}}})
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx = fx.withNetwork("10.0.0.0/24")
	p := fx.createPort(cmp1, withAdminDown)
	storetest.Exec(t, url,
		`update block set since = since - interval '2 hours', deadline = deadline - interval '2 hours'`)
	old := fx.readPort(p.ID).Blocks[0]

	fx.updatePort(p.ID, network.PortChange{AdminUp: ptr(true)})

	fx.checkPort("after the port is administratively enabled", p, network.Down, "L2@cmp-1")
	b := fx.readPort(p.ID).Blocks[0]
	if b.Since.Sub(old.Since) < 2*time.Hour || b.Deadline == nil ||
		!b.Deadline.Equal(b.Since.Add(time.Hour)) {
		t.Errorf(
			"enable a port: got a block since %s with deadline %v, previously since %s; want a new start, and the deadline an hour later",
			b.Since, b.Deadline, old.Since,
		)
	}
	fx.updatePort(p.ID, network.PortChange{Name: ptr("other"), AdminUp: ptr(true)})
	if again := fx.readPort(p.ID).Blocks[0]; !again.Since.Equal(b.Since) {
		t.Errorf(
			"update a port without changing its admin state: the block began at %s, then got %s, want no change",
			b.Since,
			again.Since,
		)
	}
}
