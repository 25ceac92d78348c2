package inventorystore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

const (
	aggregateOne   = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f01"
	aggregateTwo   = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f02"
	aggregateThree = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f03"
)

// newProvider creates a provider, and returns its UUID.
func newProvider(t *testing.T, s *store.Store) string {
	t.Helper()
	p := uuid.NewString()
	if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: p, Name: p}); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSetAggregates_NeedsOneRoundTrip(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	q := storetest.NewQueryCounter(t, url)
	s := storetest.Open(t, q.URL)
	p := newProvider(t, s)
	var trips int64
	for generation := range int64(3) { // a new connection has additional round trips
		before := q.RoundTrips()
		got, err := s.Inventory.SetAggregates(t.Context(), p, []string{aggregateTwo, aggregateOne, aggregateTwo}, &generation)
		if err != nil || got != generation+1 {
			t.Fatalf("got generation %d, error %v; want generation %d", got, err, generation+1)
		}
		trips = q.RoundTrips() - before
	}
	if trips != 1 {
		t.Errorf("round trips to PostgreSQL: got %d, want 1", trips)
	}

	zero := int64(0)
	_, err := s.Inventory.SetAggregates(t.Context(), p, nil, &zero)
	var fault *inventory.Fault
	if !errors.As(err, &fault) || fault.Kind != inventory.ConcurrentUpdate {
		t.Errorf("write with an old generation: got error %v, want a fault of kind ConcurrentUpdate", err)
	}
	want := inventory.Aggregates{Generation: 3, UUIDs: []string{aggregateOne, aggregateTwo}}
	if got, err := s.Inventory.Aggregates(t.Context(), p); err != nil || !cmp.Equal(want, got) {
		t.Errorf("aggregates: got %v, error %v; want %v", got, err, want)
	}
}

// A write of an old microversion changes no generation. A write that has waited for it nevertheless replaces
// its aggregates, as if it had come later.
func TestSetAggregates_ReplacesThoseOfAWriterForWhichItWaits(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := newProvider(t, s)
	err := storetest.NewRival(t, url).RunAgainst(
		func() error {
			zero := int64(0)
			return errorOf(s.Inventory.SetAggregates(t.Context(), p, []string{aggregateOne}, &zero))
		},
		`select from provider for no key update`,
		`insert into provider_aggregate (provider_id, aggregate) select id, '`+aggregateThree+`' from provider`,
	)
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.Aggregates{Generation: 1, UUIDs: []string{aggregateOne}}
	if got, err := s.Inventory.Aggregates(t.Context(), p); err != nil || !cmp.Equal(want, got) {
		t.Errorf("aggregates: got %v, error %v; want %v", got, err, want)
	}
}
