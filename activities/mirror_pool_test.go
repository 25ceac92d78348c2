package activities_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// poolMembers returns the sorted IDs of the members that the controller has.
func (m *mirrorFixture) poolMembers(pool string) []string {
	var ids []string
	for _, r := range m.odl.Records() {
		if r.Type == "member" && r.Object != nil && r.Object["pool_id"] == pool {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestPool_UpdateKeepsItsMembers(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]map[string]any{
		"no members in the update":    {"name": "p2"},
		"empty list of members":       {"name": "p2", "members": []any{}},
		"only one member":             {"name": "p2", "members": []any{map[string]any{"id": "one"}}},
		"the controller fails for it": {"name": "p2", "members": []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMirrorFixture(t)
			pool, members := uuid.NewString(), []string{uuid.NewString(), uuid.NewString(), uuid.NewString()}
			m.recordChanges(newChange(journal.Create, "pool", pool, map[string]any{"name": "p"}))
			for _, id := range members {
				m.recordChanges(
					newChange(journal.Create, "member", id, map[string]any{"pool_id": pool, "weight": 1}),
				)
			}
			m.drainJournal()

			m.recordChanges(
				newChange(journal.Update, "member", members[0], map[string]any{"pool_id": pool, "weight": 7}),
				newChange(journal.Update, "pool", pool, more),
				journal.Change{
					Operation: journal.Delete,
					Object:    journal.Ref{Type: "member", ID: members[1]},
				},
			)
			if name == "the controller fails for it" {
				m.odl.InjectFaults(odltest.Fault{Type: "member", Status: 503, Times: 2})
			}
			for range 3 {
				m.endRetryDelays()
				m.drainJournal()
			}

			want := []string{members[0], members[2]}
			slices.Sort(want)
			if d := cmp.Diff(want, m.poolMembers(pool)); d != "" {
				t.Errorf(
					"members of the pool at the controller after an update of the pool (-want +got):\n%s",
					d,
				)
			}
			m.checkInSync()
		})
	}
}

// A full sync that corrects a pool does not lose the members of the pool.
func TestPool_FullSyncKeepsItsMembers(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	pool, member := uuid.NewString(), uuid.NewString()
	m.recordChanges(newChange(journal.Create, "pool", pool, map[string]any{"name": "p"}),
		newChange(journal.Create, "member", member, map[string]any{"pool_id": pool}))
	m.drainJournal()
	if _, err := m.odl.ChangeShare(1, 1); err != nil {
		t.Fatal(err)
	}

	if r := m.finishRun(m.startRun(contract.KeyFullSync, 0)); r.State == journal.Running {
		t.Fatalf("full sync: got %s, want its end", r.Sentence())
	}

	if d := cmp.Diff([]string{member}, m.poolMembers(pool)); d != "" {
		t.Errorf("members of the pool at the controller after a full sync (-want +got):\n%s", d)
	}
	m.checkInSync()
}
