package activities_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
)

// createGroup creates a security group with its default rules.
func (m *mirrorFixture) createGroup(name string) network.SecurityGroup {
	m.Helper()
	groups, err := m.store.Network.CreateSecurityGroups(m.Context(),
		[]network.SecurityGroupChange{{Name: &name, Project: ptr("demo")}})
	if err != nil {
		m.Fatal(err)
	}
	return groups[0]
}

// tcpRule is the draft of a rule that allows a TCP port.
func tcpRule(group uuid.UUID, port int) network.SecurityRuleChange {
	return network.SecurityRuleChange{
		Group:     &group,
		Project:   ptr("demo"),
		Direction: ptr(network.Ingress),
		EtherType: ptr(network.IPv4),
		Protocol:  ptr("tcp"),
		PortMin:   &port,
		PortMax:   &port,
	}
}

// checkGroupRevisions checks that the controller has every security group with the revision of its row.
func (m *mirrorFixture) checkGroupRevisions() {
	m.Helper()
	groups, err := m.store.Network.SecurityGroups(m.Context(), db.Listing{})
	if err != nil {
		m.Fatal(err)
	}
	for _, g := range groups {
		got := m.odl.Record("security_group", g.ID.String()).Object["revision_number"]
		if n, ok := got.(json.Number); !ok || n.String() != fmt.Sprint(g.Revision) {
			m.Errorf("revision_number of the security group %s at the controller: got %v, want %d",
				g.Name, got, g.Revision)
		}
	}
}

func TestSecurityGroup_InSyncAfterItsRulesChanged(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	g := m.createGroup("web")
	m.drainJournal()
	rules, err := m.store.Network.CreateSecurityRules(t.Context(),
		[]network.SecurityRuleChange{tcpRule(g.ID, 80), tcpRule(g.ID, 443), tcpRule(g.ID, 22)})
	if err != nil {
		t.Fatal(err)
	}
	m.drainJournal()
	m.checkGroupRevisions()
	m.checkInSync()

	if _, err := m.store.Network.UpdateSecurityRule(t.Context(), rules[0].ID, network.SecurityRuleChange{Description: ptr("HTTP")}, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules[1:] {
		if err := m.store.Network.DeleteSecurityRule(t.Context(), r.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	m.drainJournal()
	m.checkGroupRevisions()
	m.checkInSync()
}

func TestSecurityGroup_InSyncAfterTheDeletionOfARemoteGroup(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	web, clients := m.createGroup("web"), m.createGroup("clients")
	draft := tcpRule(web.ID, 80)
	draft.RemoteGroup = &clients.ID
	if _, err := m.store.Network.CreateSecurityRules(t.Context(), []network.SecurityRuleChange{draft}); err != nil {
		t.Fatal(err)
	}
	m.drainJournal()

	if err := m.store.Network.DeleteSecurityGroup(t.Context(), clients.ID, nil); err != nil {
		t.Fatal(err)
	}
	m.drainJournal()
	m.checkGroupRevisions()
	m.checkInSync()
}
