package leasestore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/storetest"
)

func TestLeaseRank_CountsLeasesWithTheSameInstantByID(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 4)
	var crowd []lease.Lease
	for range 3 {
		crowd = append(crowd, e.createLease(hostsDraft(1, 2, 1, 1)))
	}
	alone := e.createLease(hostsDraft(3, 4, 1, 1))
	slices.SortFunc(crowd, func(a, b lease.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) })

	got, err := e.Lease.LeaseRanks(t.Context(), map[uuid.UUID]time.Time{
		crowd[0].ID: hour(1),
		crowd[2].ID: hour(1),
		alone.ID:    hour(3),
		crowd[1].ID: hour(7),
		uuid.New():  hour(1),
	})

	if d := cmp.Diff(map[uuid.UUID]int{crowd[0].ID: 0, crowd[2].ID: 2, alone.ID: 0}, got); d != "" ||
		err != nil {
		t.Errorf("ranks of the leases: got error %v; difference (-want +got):\n%s", err, d)
	}
}

// If another lease is changed or deleted, the rank of a lease can fall below lease.LeaderCount. The workflow
// of this lease must then be nudged, because it must wake up earlier than it has computed from the old rank.
func TestLeaseRank_NewLeadersAreNudged(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 6)
	var all []lease.Lease
	for range 6 {
		all = append(all, e.createLease(hostsDraft(1, 2, 1, 1)))
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return slices.Compare(a.ID[:], b.ID[:]) })
	notedWorkflows := func(do func()) (workflows []string) {
		t.Helper()
		storetest.Exec(t, e.url, `delete from note`)
		do()
		rows, err := storetest.Connect(t, e.url).Query(t.Context(), `select workflow_id from note`)
		if err != nil {
			t.Fatal(err)
		}
		workflows, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(workflows)
		return workflows
	}
	remove := func(i int) func() {
		return func() {
			if gone, err := e.Lease.DeleteLease(t.Context(), all[i].ID); !gone || err != nil {
				t.Errorf("delete a pending lease: got gone %t, error %v; want true and no error", gone, err)
			}
		}
	}
	names := func(which ...int) (names []string) {
		for _, i := range which {
			names = append(names, "lease/"+all[i].ID.String())
		}
		return names
	}

	for _, c := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the last lease is deleted", remove(5), names(5)},
		{"a leader moves to another instant", func() {
			if _, err := e.Lease.UpdateLease(t.Context(), all[1].ID, lease.Change{Start: &lease.RequestedDate{At: hour(1).Add(time.Minute)}}); err != nil {
				t.Error(err)
			}
		}, names(1, 4)},
		{"a leader is renamed", func() {
			if _, err := e.Lease.UpdateLease(t.Context(), all[0].ID, lease.Change{Name: new("new")}); err != nil {
				t.Error(err)
			}
		}, names(0)},
		{"another leader is deleted", remove(2), names(2, 4)}, // all end at the same instant
		{"no lease moves up", remove(3), names(3)},
	} {
		if d := cmp.Diff(c.want, notedWorkflows(c.do)); d != "" {
			t.Errorf("workflows that are nudged when %s (-want +got):\n%s", c.what, d)
		}
	}
}
