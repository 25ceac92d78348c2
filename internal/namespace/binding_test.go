package namespace_test

import (
	"os"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/namespace"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m, storetest.Main)) }

// bound is a database with one network, which has a journal entry and therefore a workflow, that was bound to
// a Temporal namespace.
type bound struct {
	*testing.T
	store   *store.Store
	url     string
	binding *namespace.Binding
}

func newBound(t *testing.T) bound {
	t.Helper()
	url, n := storetest.URL(t), temporaltest.New(t)
	s := storetest.Open(t, url)
	project := "p"
	if _, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project}}); err != nil {
		t.Fatal(err)
	}
	b := bound{t, s, url, namespace.New(s.Outbox, n.Client, n.Name)}
	b.expectBound()
	storetest.Exec(t, url, `delete from note`)
	return b
}

func (b bound) expectBound() {
	b.Helper()
	if ok, err := b.binding.Bind(b.Context()); err != nil || !ok {
		b.Fatalf("bind the database: got %t, error %v; want true", ok, err)
	}
}

// notes returns the number of notes that a relay with the binding can claim.
func (b bound) notes() []contract.Note {
	b.Helper()
	notes, err := b.store.Outbox.Claim(b.Context(), b.binding.ID(), 10, 0)
	if err != nil {
		b.Fatal(err)
	}
	return notes
}

func TestBind_ARestoredDatabaseIsBoundAgain(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]string{
		"from a backup that belongs to another namespace":  `update temporal_namespace set id = 'earlier', name = 'berth', adopted_at = adopted_at - interval '1 second'`,
		"from a backup of the time before the first start": `delete from temporal_namespace`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBound(t)

			storetest.Exec(t, b.url, restore)
			b.expectBound()

			if notes := b.notes(); len(notes) != 1 {
				t.Errorf(
					"notes after the restore: got %+v, want one for the journal entry of the network",
					notes,
				)
			}
			storetest.Exec(t, b.url, `delete from note`)
			b.expectBound()
			if notes := b.notes(); len(notes) != 0 {
				t.Errorf("notes after the database was bound again: got %+v, want no more", notes)
			}
		})
	}
}

func TestBind_ALaterBindingOfAnotherProcessStays(t *testing.T) {
	t.Parallel()
	b := newBound(t)
	if _, err := b.store.Outbox.Adopt(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}

	ok, err := b.binding.Bind(t.Context())

	if ok || err == nil || !strings.Contains(err.Error(), "restart this process") {
		t.Errorf(
			"bind a database that another process has bound since: got %t, error %v; want an error with advice",
			ok,
			err,
		)
	}
	if n, err := b.store.Outbox.BoundNamespace(t.Context()); err != nil || n.ID != "other" {
		t.Errorf("namespace of the database: got %+v, error %v; want the other one", n, err)
	}
}
