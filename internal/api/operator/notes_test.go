package operator_test

import (
	"testing"
	"time"

	"berth/internal/api/operator"
	"berth/internal/contract"
	"berth/internal/identity"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestNotes_ListsAndRetriesNotesThatAreSetAside(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{
		Inventory:  s.Inventory,
		Network:    s.Network,
		Agents:     s.Agents,
		Outbox:     s.Outbox,
		Mirror:     s.Mirror,
		Identity:   identity.Noauth{},
		Incomplete: incompleteOwner,
	})
	if err := s.DB.InTx(t.Context(), func(tx db.Tx) error {
		return outbox.Enqueue(t.Context(), tx, contract.Nudge{Workflow: contract.Port, ID: "port/1"}, contract.Nudge{Workflow: contract.Port, ID: "port/2"})
	}); err != nil {
		t.Fatal(err)
	}
	for _, n := range storetest.ClaimNotes(t, s) {
		if n.ID == "port/1" {
			if err := s.Outbox.Refuse(t.Context(), n, true, time.Hour, "too many signals"); err != nil {
				t.Fatal(err)
			}
		}
	}

	status, answer := send(t, h, "admin", "GET", "/operator/v1/notes?state=set-aside", "")

	listed, _ := answer["notes"].([]any)
	if status != 200 || answer["set_aside"] != 1.0 || len(listed) != 1 {
		t.Fatalf("list the notes that are set aside: got %d %v, want one", status, answer)
	}
	first, _ := listed[0].(map[string]any)
	if first["workflow_id"] != "port/1" || first["state"] != "set-aside" ||
		first["last_error"] != "too many signals" ||
		first["set_aside_at"] == nil {
		t.Errorf("the note that is set aside: got %v, want port/1 with its reason", first)
	}
	status, answer = send(t, h, "admin", "GET", "/operator/v1/notes?limit=10", "")
	if len(answer["notes"].([]any)) != 2 {
		t.Errorf("list all notes: got %d %v, want two", status, answer)
	}
	for body, want := range map[string]float64{`{"workflow_ids":["port/2","port/9"]}`: 0, `{"workflow_ids":["port/1"]}`: 1, `{}`: 1} {
		if status, answer = send(t, h, "admin", "POST", "/operator/v1/notes/retry", body); status != 200 ||
			answer["retried"] != want {
			t.Errorf("retry the notes of %s: got %d %v, want %v retried", body, status, answer, want)
		}
	}
	if due := storetest.ClaimNotes(t, s); len(due) != 1 || due[0].ID != "port/1" {
		t.Errorf("notes that are due after the retry: got %v, want port/1", due)
	}
	for path, want := range map[string]int{
		"?state=lost":    400,
		"?limit=0":       400,
		"?other=1":       400,
		"?state=waiting": 200,
	} {
		if status, _ := send(t, h, "admin", "GET", "/operator/v1/notes"+path, ""); status != want {
			t.Errorf("GET /operator/v1/notes%s: got %d, want %d", path, status, want)
		}
	}
	if status, _ := send(t, h, "eve:demo", "GET", "/operator/v1/notes", ""); status != 403 {
		t.Errorf("GET /operator/v1/notes as a member: got %d, want 403", status)
	}
}
