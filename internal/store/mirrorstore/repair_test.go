package mirrorstore_test

import (
	"testing"
	"time"

	"berth/internal/journal"
	"berth/internal/store/storetest"
)

func TestUnrecoveredEntries_MissingParentByCodeNotBySentence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		code   journal.ErrorCode // of the outcome
		reason string            // of the outcome
		then   string            // SQL that follows the outcome
		due    bool
	}{
		{
			name:   "code with another sentence",
			code:   journal.MissingParent,
			reason: "no such network",
			due:    true,
		},
		{
			name:   "sentence without a code",
			reason: "the controller does not know an object that this one refers to (442)",
		},
		{
			name:   "too few attempts",
			code:   journal.MissingParent,
			reason: "no such network",
			then:   `update journal_entry set attempt = 2`,
		},
		{
			name:   "completed",
			code:   journal.MissingParent,
			reason: "no such network",
			then:   `update journal_entry set state = 'completed', finished_at = now()`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			storetest.Exec(t, url, `
				insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, attempt, taken_at)
				values ('port', 'p1', 'create', '{}', '{}', 'demo', 'p1', 'processing', 3, now())`)
			o := journal.Outcome{Kind: journal.OutcomeRetry, Code: tt.code, Reason: tt.reason}
			if _, err := s.Journal.SaveOutcome(t.Context(), 1, 3, o); err != nil {
				t.Fatal(err)
			}
			if tt.then != "" {
				storetest.Exec(t, url, tt.then)
			}

			due, err := s.Mirror.IsRecoveryDue(t.Context(), time.Minute, time.Minute)

			if err != nil || due != tt.due {
				t.Errorf("IsRecoveryDue: got %t, error %v; want %t", due, err, tt.due)
			}
			entries, err := s.Mirror.UnrecoveredEntries(t.Context(), 1, 0, 10)
			if err != nil || (len(entries) == 1) != tt.due {
				t.Errorf("UnrecoveredEntries: got %d entries, error %v; want the entry: %t",
					len(entries), err, tt.due)
			}
		})
	}
}
