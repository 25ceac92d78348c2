package leasestore_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// allLeases reads all leases of a project, or of all projects, page by page.
func (t *fixture) allLeases(project string) (all []lease.Lease) {
	t.Helper()
	for _, page := range t.leasePages(lease.Filter{Project: project, Limit: 100}, func() {}) {
		all = append(all, page...)
	}
	return all
}

// leasePages reads all pages of a list of leases, and calls `between` after each page.
func (t *fixture) leasePages(f lease.Filter, between func()) (pages [][]lease.Lease) {
	t.Helper()
	for {
		page, last, err := t.Lease.Leases(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
		if last {
			return pages
		}
		if len(page) == 0 || len(page) > f.Limit {
			t.Fatalf(
				"page of at most %d leases: got %d leases, want at least one, because another page follows",
				f.Limit,
				len(page),
			)
		}
		f.After = lease.Position{CreatedAt: page[len(page)-1].CreatedAt, ID: page[len(page)-1].ID}
		between()
	}
}

// insertLeases inserts leases whose reservations have requirements of the given sizes, one lease for each
// list of sizes.
func (t *fixture) insertLeases(project string, sizes ...[]int) (ids []uuid.UUID) {
	t.Helper()
	conn := storetest.Connect(t, t.url)
	for _, of := range sizes {
		id := uuid.New()
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `
			insert into lease (id, name, user_id, project_id, status, start_at, end_at)
			values ($1, 'l', 'u', $2, 'PENDING', now(), now())`, id, project); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `
			insert into event (id, lease_id, event_type, at, status)
			select gen_random_uuid(), $1, kind, now(), 'UNDONE' from unnest(array['start_lease', 'end_lease']) kind`, id); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `
			insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties, before_end)
			select gen_random_uuid(), $1, n, 'physical:host', 'pending', 1, 1, repeat(' ', size), '', 'default'
			from unnest($2::int[]) with ordinality as r (size, n)`, id, of); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func idsOf(leases []lease.Lease) (ids []uuid.UUID) {
	for _, l := range leases {
		ids = append(ids, l.ID)
	}
	return ids
}

// A reservation of an older version can have requirements of 16 KiB, and a lease can have a hundred
// reservations.
func TestLeases_PageEndsBeforeItsLeasesAreLarge(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	const large = 100 << 10
	ids := e.insertLeases("p", []int{1}, []int{1},
		[]int{large, large}, []int{1}, []int{4 * large}, []int{large}, []int{large}, []int{large})
	other := e.insertLeases("q", []int{1})

	var sizes []int
	var all []uuid.UUID
	for _, page := range e.leasePages(lease.Filter{Project: "p", Limit: 100}, func() {}) {
		sizes, all = append(sizes, len(page)), append(all, idsOf(page)...)
	}
	if d := cmp.Diff([]int{4, 1, 2, 1}, sizes); d != "" {
		t.Errorf("numbers of leases on the pages (-want +got):\n%s", d)
	}
	if d := cmp.Diff(ids, all); d != "" {
		t.Errorf("leases of the project (-want +got):\n%s", d)
	}
	for _, l := range e.allLeases("p") {
		if len(l.Reservations) == 0 || len(l.Events) != 2 {
			t.Errorf(
				"listed lease: got %d reservations and the events %v, want reservations and two events",
				len(l.Reservations),
				l.Events,
			)
		}
	}
	if d := cmp.Diff(append(ids, other...), idsOf(e.allLeases(""))); d != "" {
		t.Errorf("leases of all projects (-want +got):\n%s", d)
	}
}

func TestLeases_PagesContinueAfterADeletedLease(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	ids := e.insertLeases("p", slices.Repeat([][]int{{1}}, 7)...)
	deleted := 0
	pages := e.leasePages(lease.Filter{Limit: 2}, func() {
		e.deleteLease(ids[2*deleted+1]) // the last lease of the page
		deleted++
	})
	if d := cmp.Diff(ids, idsOf(slices.Concat(pages...))); d != "" {
		t.Errorf(
			"leases on pages of two, of which the last lease is deleted after each page (-want +got):\n%s",
			d,
		)
	}
}
