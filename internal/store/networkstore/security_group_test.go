package networkstore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// The deletion of a group also deletes the rules of other groups that name it as their remote group. These
// other groups change: their revisions grow, and the controller and the agents hear of the change. A group
// that no deleted rule belongs to does not change.
func TestSecurityGroup_DeletionChangesTheGroupsThatReferToIt(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Network.Store = networkstore.New(s.DB, networkstore.Config{NotifyAgents: true})
	names := []string{"gone", "one rule", "two rules", "no rule"}
	groups, err := s.Network.CreateSecurityGroups(t.Context(), []network.SecurityGroupChange{
		{
			Project: new("p"),
			Name:    &names[0],
		}, {Project: new("p"), Name: &names[1]}, {Project: new("p"), Name: &names[2]}, {Project: new("p"), Name: &names[3]}})
	if err != nil {
		t.Fatal(err)
	}
	gone := groups[0].ID
	rule := func(in uuid.UUID, kind string) network.SecurityRuleChange {
		return network.SecurityRuleChange{
			Project:     new("p"),
			Group:       &in,
			Direction:   new(network.Ingress),
			EtherType:   &kind,
			RemoteGroup: &gone,
		}
	}
	if _, err := s.Network.CreateSecurityRules(t.Context(), []network.SecurityRuleChange{rule(groups[1].ID, network.IPv4), rule(groups[2].ID, network.IPv4),
		rule(groups[2].ID, network.IPv6), rule(gone, network.IPv4)}); err != nil {
		t.Fatal(err)
	}
	revisions := func() map[string]int64 {
		all, err := s.Network.SecurityGroups(t.Context(), db.Listing{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int64{}
		for _, g := range all {
			found[g.Name] = g.Revision
		}
		return found
	}
	before := revisions()
	takeNotifications(t, s, network.NotificationQueue(network.ResourceSecurityGroup, "p"))

	if err := s.Network.DeleteSecurityGroup(t.Context(), gone, nil); err != nil {
		t.Fatal(err)
	}

	want := map[string]int64{
		"one rule":  before["one rule"] + 1,
		"two rules": before["two rules"] + 1,
		"no rule":   before["no rule"],
	}
	if d := cmp.Diff(want, revisions()); d != "" {
		t.Errorf("revisions of the groups after the deletion (-want +got):\n%s", d)
	}
	updated := func(all []string) (n int) {
		return len(slices.DeleteFunc(all, func(what string) bool { return what != "security_group updated" }))
	}
	if n := updated(takeNotifications(t, s, network.NotificationQueue(network.ResourceSecurityGroup, "p"))); n != 2 {
		t.Errorf("notifications of agents about changed groups: got %d, want 2", n)
	}
	entries, err := s.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var journaled []string
	for _, e := range entries {
		journaled = append(journaled, string(e.Operation)+" "+e.Object.ID)
	}
	changed := []string{"update " + groups[1].ID.String(), "update " + groups[2].ID.String()}
	slices.Sort(changed)
	if d := cmp.Diff(append([]string{"delete " + gone.String()}, changed...), journaled[len(journaled)-3:]); d != "" {
		t.Errorf("last journal entries (-want +got):\n%s", d)
	}
}

// Two groups that refer to each other can be deleted at the same time.
func TestSecurityGroup_GroupsThatReferToEachOtherAreDeletedConcurrently(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for range 5 {
		groups, err := s.Network.CreateSecurityGroups(t.Context(), []network.SecurityGroupChange{
			{Project: new("p"), Name: new("web")},
			{Project: new("p"), Name: new("db")},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range groups {
			if _, err := s.Network.CreateSecurityRules(t.Context(), []network.SecurityRuleChange{{
				Project:     new("p"),
				Group:       &groups[i].ID,
				Direction:   new(network.Ingress),
				EtherType:   new(network.IPv4),
				RemoteGroup: &groups[1-i].ID,
			}}); err != nil {
				t.Fatal(err)
			}
		}
		var deletions sync.WaitGroup
		for _, g := range groups {
			deletions.Go(func() {
				if err := s.Network.DeleteSecurityGroup(t.Context(), g.ID, nil); err != nil {
					t.Errorf("delete one of two groups that refer to each other: %v", err)
				}
			})
		}
		deletions.Wait()
	}
}

// PostgreSQL expects that many ports use a group of which it knows nothing, so that a search for the first
// one in the table is short. If no port uses the group, the search reads the whole table.
func TestPlan_ChangeOfAnUnusedSecurityGroupReadsNoPorts(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, `
		set local session_replication_role = replica;
		insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security, security_groups)
		select gen_random_uuid(), gen_random_uuid(), 'p', '', '', true, 'fa:16:3e:00:00:00', '', '', 'DOWN', '', 'normal', '{}', 'unbound', true, array[md5('default')::uuid]
		from generate_series(1, 20000) n`)
	changed, deleted := createGroups(t, url, "p", storetest.PlanRepeats), createGroups(t, url, "q", storetest.PlanRepeats)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	url += "&random_page_cost=6" // so that PostgreSQL prefers such a search in this small table, too
	for name, change := range map[string]func(s *store.Store, i int) error{
		"change of stateful": func(s *store.Store, i int) error {
			_, err := s.Network.UpdateSecurityGroup(t.Context(), changed[i].ID,
				network.SecurityGroupChange{Stateful: new(false)}, nil)
			return err
		},
		"deletion": func(s *store.Store, i int) error {
			return s.Network.DeleteSecurityGroup(t.Context(), deleted[i].ID, nil)
		},
	} {
		storetest.ExpectFewReads(t, watch, name, []string{"port"}, func() {
			s := storetest.Open(t, url)
			defer s.Close()
			for i := range storetest.PlanRepeats {
				if err := change(s, i); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// createGroups creates security groups of a project.
func createGroups(t *testing.T, url, project string, count int) []network.SecurityGroup {
	t.Helper()
	s := storetest.Open(t, url)
	defer s.Close()
	drafts := make([]network.SecurityGroupChange, count)
	for i := range drafts {
		drafts[i] = network.SecurityGroupChange{Project: &project, Name: new(fmt.Sprint("group ", i))}
	}
	groups, err := s.Network.CreateSecurityGroups(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}
