package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestClaim_UrgentNotesComeFirst(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, n := range []contract.Nudge{
		{Workflow: contract.JournalEntry, ID: "journal/1"}, {Workflow: contract.JournalEntry, ID: "journal/2"},
		{Workflow: contract.Webhook, ID: "webhook/1"}, {Workflow: contract.Lease, ID: "lease/1"}, {Workflow: contract.Port, ID: "port/1"},
	} {
		enqueue(t, s, n)
	}
	claim := func(limit int, least outbox.Shares) (ids []string) {
		t.Helper()
		notes, err := s.Outbox.ClaimShares(t.Context(), "", limit, least, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range notes {
			ids = append(ids, n.ID)
		}
		return ids
	}

	if d := cmp.Diff([]string{"lease/1", "journal/1"}, claim(1, outbox.Shares{Bulk: 1})); d != "" {
		t.Errorf("claim one note and a bulk note (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"port/1", "webhook/1"}, claim(2, outbox.Shares{})); d != "" {
		t.Errorf("claim two notes (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"journal/2"}, claim(2, outbox.Shares{})); d != "" {
		t.Errorf("claim the remaining note (-want +got):\n%s", d)
	}
}

// When thousands of notes wait, a claim must not read all of them, because every relay claims several times
// in a second.
func TestClaim_ReadsOnlyTheNotesThatItClaims(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `
		insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, priority)
		select 'journal/' || n, 'JournalEntry', false, '', '{}', now() - interval '1 hour' + n * interval '1 ms', n % 3
		from generate_series(1, 100000) n`)
	storetest.FixPlans(t, url)

	rows, err := storetest.Connect(t, url).Query(t.Context(), `
		explain select workflow_id
		from note
		where priority = 1 and due_at <= now() and not exists (select from temporal_namespace where id <> 'x')
		order by due_at
		limit 16
		for update skip locked`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")

	if !strings.Contains(plan, "note_claim") || strings.Contains(plan, "Sort") ||
		strings.Contains(plan, "Seq Scan on note") {
		t.Errorf("plan of the claim with 100,000 notes: want an index scan without a sort, got:\n%s", plan)
	}
	if notes, err := s.Outbox.Claim(t.Context(), "", 16, time.Minute); err != nil || len(notes) != 16 {
		t.Errorf("claim 16 of 100,000 notes: got %d, error %v", len(notes), err)
	}
}

func TestRefuse_NoteIsSetAsideUntilItIsDelivered(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	n := contract.Nudge{Workflow: contract.Port, ID: "port/1"}
	enqueue(t, s, n)
	refused := storetest.ClaimNotes(t, s)
	if err := s.Outbox.Refuse(t.Context(), refused[0], true, time.Hour, "invalid argument"); err != nil {
		t.Fatal(err)
	}

	if b, err := s.Outbox.Backlog(t.Context()); err != nil || b.Notes != 0 || b.Oldest != 0 {
		t.Errorf("backlog with one note that is set aside: got %+v, error %v; want none", b, err)
	}
	if due := storetest.ClaimNotes(t, s); len(due) != 0 {
		t.Errorf("claim a note that is set aside for an hour: got %v, want none", due)
	}
	enqueue(t, s, n)
	again := storetest.ClaimNotes(t, s)
	if len(again) != 1 || again[0].Refusals != 1 {
		t.Fatalf("claim the note after the next nudge: got %+v, want the note with one refusal", again)
	}
	if count, err := s.Outbox.CountSetAside(t.Context()); err != nil || count != 1 {
		t.Errorf("count the notes that are set aside before the delivery: got %d, error %v; want 1",
			count, err)
	}
	if err := s.Outbox.Settle(t.Context(), "", again); err != nil {
		t.Fatal(err)
	}
	if count, err := s.Outbox.CountSetAside(t.Context()); err != nil || count != 0 {
		t.Errorf("count the notes that are set aside after the delivery: got %d, error %v; want 0",
			count, err)
	}
}

// If a nudge is merged into a note while Temporal refuses the note, the change behind the nudge may have
// removed the reason for the refusal.
func TestRefuse_NudgeDuringTheRefusalMakesTheNoteDueSoon(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})
	refused := storetest.ClaimNotes(t, s)
	enqueue(t, s, contract.Nudge{Workflow: contract.Port, ID: "port/1"})

	if err := s.Outbox.Refuse(t.Context(), refused[0], true, time.Hour, "invalid argument"); err != nil {
		t.Fatal(err)
	}

	if wait, ok, err := s.Outbox.NextDue(t.Context()); err != nil || !ok || wait > time.Minute {
		t.Errorf("time until the next attempt: got %s, %t, error %v; want a second", wait, ok, err)
	}
}
