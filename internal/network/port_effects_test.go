package network_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
)

func TestEffectsOf_ListsEverythingThatFollows(t *testing.T) {
	t.Parallel()
	server, id := uuid.NewString(), uuid.New()
	base := network.Port{
		ID:          id,
		AdminUp:     true,
		Host:        "cmp-1",
		VIF:         network.VIFOVS,
		Status:      network.Active,
		Revision:    4,
		DeviceOwner: "compute:nova",
		DeviceID:    server,
	}
	event := func(name, status string) network.NovaEvent {
		return network.NovaEvent{
			Server: server,
			Name:   name,
			Status: status,
			Tag:    id.String(),
		}
	}
	port := func(change func(*network.Port)) network.Port {
		p := base
		change(&p)
		return p
	}
	waiting := port(func(p *network.Port) {
		p.Status, p.Blocks = network.Down, []network.Block{{Entity: network.L2, Host: "cmp-1"}}
	})
	notice := func(entity string) *network.ProvisioningNotification {
		n, _ := base.ProvisioningNotification(entity)
		return &n
	}
	plugged := []network.NovaEvent{event(network.NovaVIFPlugged, "completed")}
	changed := []network.NovaEvent{event("network-changed", "")}
	for name, c := range map[string]struct {
		before, after network.Port
		cause         network.PortCause
		want          network.PortEffects
	}{
		"nothing has changed":  {base, base, network.PortCause{Request: true, Entity: network.L2}, network.PortEffects{}},
		"a block was replaced": {base, base, network.PortCause{BlocksChanged: true}, network.PortEffects{Nudge: true, Provisioning: notice("")}},
		"only the count of ignored reports": {base, port(func(p *network.Port) { p.IgnoredReports++ }), network.PortCause{OwnWorkflow: true},
			network.PortEffects{IgnoredReports: true}},
		"only the count of ignored reports, from elsewhere": {base, port(func(p *network.Port) { p.IgnoredReports++ }), network.PortCause{},
			network.PortEffects{IgnoredReports: true}},
		"an agent must ask again": {base, port(func(p *network.Port) { p.IgnoredReports++ }), network.PortCause{DetailsAgain: true},
			network.PortEffects{IgnoredReports: true, AgentEvent: network.EventUpdated, Nudge: true}},
		"the last report, from the workflow": {waiting, base, network.PortCause{Entity: network.L2, OwnWorkflow: true},
			network.PortEffects{
				Revised:      true,
				NovaEvents:   plugged,
				Provisioning: notice(network.L2),
				AgentEvent:   network.EventUpdated,
			}},
		"the last report, from elsewhere": {waiting, base, network.PortCause{Entity: network.L2},
			network.PortEffects{
				Revised:      true,
				NovaEvents:   plugged,
				Provisioning: notice(network.L2),
				AgentEvent:   network.EventUpdated,
				Nudge:        true,
			}},
		"a client changes the name": {base, port(func(p *network.Port) { p.Name = "x" }), network.PortCause{Request: true},
			network.PortEffects{
				Revised:    true,
				NovaEvents: changed,
				AgentEvent: network.EventUpdated,
				Controller: true,
				Nudge:      true,
			}},
		"a client changes the MAC": {base, port(func(p *network.Port) { p.MAC = "fa:16:3e:00:00:01" }), network.PortCause{Request: true},
			network.PortEffects{
				Revised:    true,
				NovaEvents: changed,
				AgentEvent: network.EventDHCPUpdated,
				Controller: true,
				Nudge:      true,
			}},
		"the port was bound again": {port(func(p *network.Port) { p.VIF = network.VIFFailed }), base, network.PortCause{},
			network.PortEffects{
				Revised:    true,
				AgentEvent: network.EventUpdated,
				Controller: true,
				Nudge:      true,
			}},
		"the port moves": {base, port(func(p *network.Port) { p.Host = "cmp-2" }), network.PortCause{},
			network.PortEffects{
				Revised:    true,
				AgentEvent: network.EventUpdated,
				Controller: true,
				Subports:   true,
				Nudge:      true,
			}},
		"the port is new": {waiting, waiting, network.PortCause{Event: network.EventCreated},
			network.PortEffects{AgentEvent: network.EventCreated, Controller: true, Nudge: true}},
		"the port is deleted": {base, network.Port{}, network.PortCause{Event: network.EventDeleted},
			network.PortEffects{
				NovaEvents: []network.NovaEvent{event("network-vif-deleted", "")},
				AgentEvent: network.EventDeleted,
				Controller: true,
				Nudge:      true,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := network.EffectsOf(c.before, c.after, c.cause)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("effects (-want +got): %s", d)
			}
			ownRows := got.Provisioning == nil && got.AgentEvent == "" && !got.Controller && !got.Subports &&
				!got.Nudge
			if got.InOwnRows() != ownRows {
				t.Errorf("InOwnRows: got %t, want %t", got.InOwnRows(), ownRows)
			}
		})
	}
}
