package activities_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/journal"
	"berth/internal/store"
)

// states tells where the entries stand, in their order.
func (m *mirror) states() string {
	m.Helper()
	entries, err := m.store.JournalEntries(m.Context(), store.EntryFilter{Limit: 10_000})
	if err != nil {
		m.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprint(e.Seq, " ", e.State))
	}
	return strings.Join(all, ", ")
}

func TestEntriesThatWaitedForOneGoAlongWithIt(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	m.grow(1)

	p, err := m.acts.TryEntry(t.Context(), "1")

	if err != nil || p.State != string(journal.Completed) || !strings.Contains(p.Sentence, "With it went, having waited for it: 2, 3, 4.") {
		t.Errorf("%+v, %v", p, err)
	}
	if got := m.states(); got != "1 completed, 2 completed, 3 completed, 4 completed" {
		t.Error(got)
	}
	m.equal()
}
