package portstore_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
)

// newEffectsFixture returns a fixture whose store notifies agents and the webhook.
func newEffectsFixture(t *testing.T) fixture {
	fx := newFixture(t, "10.0.0.0/24")
	fx.Network = portstore.New(fx.DB, portstore.Config{
		Network:       networkstore.Config{NotifyAgents: true},
		NotifyWebhook: true,
	})
	return fx
}

// forgetEffects deletes the effects of everything that has happened so far.
func (fx fixture) forgetEffects() {
	fx.t.Helper()
	for _, table := range []string{"nova_event", "agent_notification", "provisioning_notification", "journal_dep", "journal_entry", "note"} {
		if _, err := fx.DB.Exec(fx.t.Context(), `delete from `+table); err != nil {
			fx.t.Fatal(err)
		}
	}
}

// effects lists what has followed from a change of the port: the events for Nova, agents, the webhook and the
// controller, and the nudge of the port's workflow.
func (fx fixture) effects(port uuid.UUID) []string {
	fx.t.Helper()
	found, err := db.QueryAll(fx.t.Context(), fx.DB, pgx.RowTo[string], `
		select effect
		from (
			select 1 as place, id, 'Nova: ' || name as effect from nova_event where port_id = $1
			union all
			select 2, id, 'agents: port ' || event from agent_notification where object_id = $1
			union all
			select 3, id, 'webhook: ' || (notification ->> 'status') || ' by ' || (notification ->> 'completed_by') from provisioning_notification where object_id = $1
			union all
			select 4, seq, 'controller: ' || operation from journal_entry where object_id = $1::uuid::text
			union all
			select 5, 0, 'nudge' from note where workflow_id = 'port/' || $1::uuid::text) as e
		order by place, id`, port)
	if err != nil {
		fx.t.Fatal(err)
	}
	return found
}

// step is something that changes a port. It returns the changed port if it is a new one.
type step func(fx fixture, p network.Port) (uuid.UUID, error)

// Steps by the way on which they reach the port.
func bySignal(reports ...network.Report) step { // and by Temporal's updates
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.UpdatePortStatus(fx.t.Context(), p.ID, reports)
		return p.ID, err
	}
}

func overHTTP(reports ...network.Report) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.ReportPort(fx.t.Context(), p.ID, reports)
		return p.ID, err
	}
}

func overRabbitMQ(reports ...network.Report) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.ReportPorts(fx.t.Context(), map[uuid.UUID][]network.Report{p.ID: reports})
		return p.ID, err
	}
}

func blocked(entity string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		r := network.Report{Entity: entity, Event: network.ReportBlock}
		_, err := fx.Network.AddBlock(fx.t.Context(), portstore.Object{Type: "port", ID: p.ID}, r)
		return p.ID, err
	}
}

func blockCompleted(r network.Report) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, _, err := fx.Network.CompleteBlock(fx.t.Context(), portstore.Object{Type: "port", ID: p.ID}, r)
		return p.ID, err
	}
}

func blockRemoved(entity string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.RemoveBlock(fx.t.Context(), portstore.Object{Type: "port", ID: p.ID}, entity)
		return p.ID, err
	}
}

func updated(c network.PortChange) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.UpdatePort(fx.t.Context(), p.ID, c, nil)
		return p.ID, err
	}
}

func bindingCreated(host string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.CreateBinding(fx.t.Context(), p.ID, network.BindingChange{Host: &host})
		return p.ID, err
	}
}

func bindingActivated(host string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		_, err := fx.Network.ActivateBinding(fx.t.Context(), p.ID, host)
		return p.ID, err
	}
}

func bindingDeleted(host string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		return p.ID, fx.Network.DeleteBinding(fx.t.Context(), p.ID, host)
	}
}

func created(host string) step {
	return func(fx fixture, _ network.Port) (uuid.UUID, error) { return fx.createPort(host).ID, nil }
}

func createdInBulk(host string) step {
	return func(fx fixture, _ network.Port) (uuid.UUID, error) {
		ports, err := fx.Network.CreatePorts(fx.t.Context(),
			[]network.PortChange{fx.portDraft(host), fx.portDraft(host)})
		if err != nil {
			return uuid.Nil, err
		}
		if d := cmp.Diff(fx.effects(ports[0].ID), fx.effects(ports[1].ID)); d != "" {
			return uuid.Nil, fmt.Errorf("the ports of one request differ (-first +second): %s", d)
		}
		return ports[1].ID, nil
	}
}

func deleted(fx fixture, p network.Port) (uuid.UUID, error) {
	return p.ID, fx.Network.DeletePort(fx.t.Context(), p.ID, nil)
}

func l2AgentStarted(host string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		fx.heartbeat(network.OVSAgent, host)
		return p.ID, nil
	}
}

func dhcpDisabled(fx fixture, p network.Port) (uuid.UUID, error) {
	fx.setSubnetDHCP(false)
	return p.ID, nil
}

func addedToTrunk(fx fixture, p network.Port) (uuid.UUID, error) {
	fx.createTrunk(fx.createPort(""), p)
	return p.ID, nil
}

func dhcpPortEnsured(host string) step {
	return func(fx fixture, p network.Port) (uuid.UUID, error) {
		p, err := fx.Network.EnsureDHCPPort(fx.t.Context(), network.PortChange{
			Network:     &p.Network,
			Project:     ptr("p"),
			Host:        &host,
			DeviceOwner: ptr(network.DeviceOwnerDHCP),
			DeviceID:    ptr("dhcp-1"),
		}, false)
		return p.ID, err
	}
}

// What follows from a change of a port must depend on the change, and not on the way on which the change has
// reached the port. Only the workflow of the port, which makes the changes that signals cause, needs no
// nudge.
func TestPortEffects_DependOnTheChangeAlone(t *testing.T) {
	t.Parallel()
	active := []step{bySignal(l2OnCmp1, dhcpReady)}
	blockedByL2 := []step{bySignal(dhcpReady)}
	plugged := []string{"Nova: network-vif-plugged", "agents: port updated", "webhook: ACTIVE by L2"}
	unplugged := []string{"Nova: network-vif-unplugged", "agents: port updated"}
	announced := []string{"agents: port created", "controller: create", "nudge"}
	mirrored := []string{"agents: port updated", "controller: update", "nudge"}
	withNova := func(events ...string) []string { return append(events, mirrored...) }
	unowned := []step{updated(network.PortChange{DeviceID: ptr(""), DeviceOwner: ptr("")})}
	nudged := func(effects ...string) []string { return append(append([]string{}, effects...), "nudge") }
	for name, c := range map[string]struct {
		host   string // of the port
		before []step
		change step
		want   []string
	}{
		"creation":              {cmp1, nil, created(cmp1), announced},
		"creation in bulk":      {cmp1, nil, createdInBulk(cmp1), announced},
		"creation without host": {cmp1, nil, created(""), announced},
		"DHCP port over RPC":    {cmp1, nil, dhcpPortEnsured(net1), announced},
		"same DHCP port":        {cmp1, []step{dhcpPortEnsured(net1)}, dhcpPortEnsured(net1), nil},
		"DHCP port moves":       {cmp1, []step{dhcpPortEnsured(net1)}, dhcpPortEnsured(cmp1), mirrored},
		"update":                {cmp1, active, updated(network.PortChange{Name: ptr("x")}), withNova("Nova: network-changed")},
		"update without change": {cmp1, active, updated(network.PortChange{Name: ptr("web-1")}), nil},
		"other host":            {cmp1, active, updated(network.PortChange{Host: ptr(cmp2)}), withNova("Nova: network-vif-unplugged", "Nova: network-changed")},
		"other MAC": {"", nil, updated(network.PortChange{MAC: ptr("fa:16:3e:00:00:01")}),
			[]string{"Nova: network-changed", "agents: port readdressed", "controller: update", "nudge"}},
		"other binding":          {cmp1, active, bindingCreated(cmp2), []string{"agents: port updated", "nudge"}},
		"binding activated":      {cmp1, append(active, bindingCreated(cmp2)), bindingActivated(cmp2), withNova("Nova: network-vif-unplugged")},
		"other binding deleted":  {cmp1, append(active, bindingCreated(cmp2)), bindingDeleted(cmp2), []string{"agents: port updated", "nudge"}},
		"active binding deleted": {cmp1, append(active, bindingCreated(cmp2)), bindingDeleted(cmp1), withNova("Nova: network-vif-unplugged", "Nova: network-changed")},

		"last report by signal":     {cmp1, blockedByL2, bySignal(l2OnCmp1), plugged},
		"last report over HTTP":     {cmp1, blockedByL2, overHTTP(l2OnCmp1), nudged(plugged...)},
		"last report over RabbitMQ": {cmp1, blockedByL2, overRabbitMQ(l2OnCmp1), nudged(plugged...)},
		"last block completed":      {cmp1, blockedByL2, blockCompleted(l2OnCmp1), nudged(plugged...)},

		"first report by signal":     {cmp1, nil, bySignal(l2OnCmp1), nil},
		"first report over HTTP":     {cmp1, nil, overHTTP(l2OnCmp1), nudged()},
		"first report over RabbitMQ": {cmp1, nil, overRabbitMQ(l2OnCmp1), nudged()},
		"first block completed":      {cmp1, nil, blockCompleted(l2OnCmp1), nudged()},

		"unplugged by signal":     {cmp1, active, bySignal(l2LostOn(cmp1)), unplugged},
		"unplugged over HTTP":     {cmp1, active, overHTTP(l2LostOn(cmp1)), nudged(unplugged...)},
		"unplugged over RabbitMQ": {cmp1, active, overRabbitMQ(l2LostOn(cmp1)), nudged(unplugged...)},
		"blocked":                 {cmp1, active, blocked("firewall"), nudged(unplugged...)},

		"last block removed": {cmp1, append(active, blocked("firewall")), blockRemoved("firewall"),
			[]string{"Nova: network-vif-plugged", "agents: port updated", "webhook: ACTIVE by ", "nudge"}},
		"last service completes": {cmp1, append(active, blocked("firewall")), blockCompleted(network.Report{Entity: "firewall"}),
			[]string{"Nova: network-vif-plugged", "agents: port updated", "webhook: ACTIVE by firewall", "nudge"}},

		"ignored report by signal":     {cmp1, nil, bySignal(l2OnCmp2), nil},
		"ignored report over HTTP":     {cmp1, nil, overHTTP(l2OnCmp2), nil},
		"ignored report over RabbitMQ": {cmp1, nil, overRabbitMQ(l2OnCmp2), nil},

		"agent starts on the host": {"cmp-3", nil, l2AgentStarted("cmp-3"), mirrored},
		"subnet without DHCP": {cmp1, []step{bySignal(l2OnCmp1)}, dhcpDisabled,
			[]string{"Nova: network-vif-plugged", "agents: port updated", "webhook: ACTIVE by ", "nudge"}},
		"port becomes a subport": {"", unowned, addedToTrunk, mirrored},
		"deletion": {cmp1, active, deleted,
			[]string{"Nova: network-vif-deleted", "agents: port deleted", "controller: delete", "nudge"}},
		"deletion of an idle port":   {"", unowned, deleted, []string{"agents: port deleted", "controller: delete", "nudge"}},
		"recheck without a reason":   {cmp1, active, bySignal(), nil},
		"heartbeat without a reason": {cmp1, active, l2AgentStarted(cmp1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newEffectsFixture(t)
			fx.t = t
			p := fx.createPort(c.host)
			for _, s := range c.before {
				if _, err := s(fx, p); err != nil {
					t.Fatal(err)
				}
			}
			fx.forgetEffects()
			id, err := c.change(fx, p)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(append([]string{}, c.want...), append([]string{}, fx.effects(id)...)); d != "" {
				t.Errorf("effects (-want +got): %s", d)
			}
		})
	}
}

// The subports of a trunk follow the host of the parent port, on whichever way it changes.
func TestPortEffects_SubportsFollowTheParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before []step
		change step
		want   string
	}{
		"other host":             {nil, updated(network.PortChange{Host: ptr(cmp2)}), cmp2},
		"live migration begins":  {nil, updated(network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)}), cmp2},
		"binding activated":      {[]step{bindingCreated(cmp2)}, bindingActivated(cmp2), cmp2},
		"active binding deleted": {nil, bindingDeleted(cmp1), ""},
		"last report":            {[]step{bySignal(dhcpReady)}, overRabbitMQ(l2OnCmp1), cmp1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newEffectsFixture(t)
			parent, sub := fx.createPort(""), fx.createUnownedPort()
			fx.createTrunk(parent, sub)
			for _, s := range append(append([]step{updated(network.PortChange{Host: ptr(cmp1)})}, c.before...), c.change) {
				if _, err := s(fx, parent); err != nil {
					t.Fatal(err)
				}
			}
			if got := fx.readPort(sub.ID).Host; got != c.want {
				t.Errorf("host of the subport: got %q, want %q", got, c.want)
			}
		})
	}
}
