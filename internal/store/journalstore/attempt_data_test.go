package journalstore_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"

	"berth/internal/journal"
	"berth/internal/store/storetest"
)

// A port can have 200 kB, and a request that only changes its name makes an entry with all of them.
func TestSaveOutcome_CompletedEntryKeepsNoLargeData(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	random := make([]byte, 50_000)
	_, _ = rand.Read(random)
	large, small := change(t, "update port large"), change(t, "update port small")
	large.Data = []byte(`{"id": "large", "extra_dhcp_opts": "` + hex.EncodeToString(random) + `"}`)
	small.Data = []byte(`{"id": "small"}`)
	recordAll(t, s, large, small)
	size := func(seq int64) int {
		t.Helper()
		e, _, _, err := s.Journal.JournalEntry(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		return len(e.Data)
	}

	settle(t, s, 1, journal.OutcomeRejected)
	if n := size(1); n < 100_000 {
		t.Errorf("entry that must be sent again: got %d bytes of data, want all of it", n)
	}
	settle(t, s, 1, journal.OutcomeDone)
	settle(t, s, 2, journal.OutcomeDone)

	if n := size(1); n > len("null") {
		t.Errorf("completed entry whose data has 100 kB: got %d bytes, want none kept", n)
	}
	if n := size(2); n != len(small.Data) {
		t.Errorf("completed entry whose data has %d bytes: got %d bytes, want them kept", len(small.Data), n)
	}
}
