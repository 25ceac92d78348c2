package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"berth/starter/cli"
)

// maxEntryAge is the age from which on doctor reports FAIL for a journal entry that the controller does not
// have yet.
const maxEntryAge = 5 * time.Minute

// readAPI reads a JSON answer of the API. If the token may not read the path, or if the API is older and does
// not know the path, readAPI returns errNotConfigured.
func readAPI(ctx context.Context, s *cli.Session, path string, out any) error {
	err := s.API.Do(ctx, "GET", path, nil, out)
	if cli.IsStatus(err, http.StatusForbidden) || cli.IsStatus(err, http.StatusNotFound) {
		return fmt.Errorf("%w: the API does not answer GET %s for this token", errNotConfigured, path)
	}
	return err
}

// readiness is the body of /readyz.
type readiness struct {
	Checks        map[string]string
	Informational []string
}

// checkAPI checks that the API process is ready, which includes that its database can commit a write.
// checkAPI warns about failed informational checks, which do not decide whether the API process is ready.
func checkAPI(ctx context.Context, s *cli.Session) (string, error) {
	var found readiness
	if err := s.API.Do(ctx, "GET", "/readyz", nil, &found); err != nil {
		var e *cli.Error
		if errors.As(err, &e) && cli.IsStatus(err, http.StatusServiceUnavailable) {
			e.Next = "The API runs but is not ready: see the other checks and the log of the worker."
		}
		return "", err
	}
	var failed []string
	for _, name := range found.Informational {
		// doctor has checks of its own for these
		if result := found.Checks[name]; result != "ok" && name != "notes" && name != "keystone" {
			failed = append(failed, name+": "+result)
		}
	}
	if len(failed) > 0 {
		return "", fmt.Errorf(
			"%w: %s is ready, but the work that follows a change (workflows, deliveries) is delayed: %s",
			errWarning, s.URL, strings.Join(failed, "; "),
		)
	}
	return s.URL + " is ready", nil
}

// checkNotes checks that no note waits too long for its delivery to Temporal.
func checkNotes(ctx context.Context, s *cli.Session) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", s.API.BaseURL+"/readyz", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Auth-Token", s.API.Token)
	res, err := s.API.HTTP.Do(req)
	if err != nil {
		return "", cli.Unavailable("the API at "+s.URL, "The check API shows what is wrong.", err)
	}
	defer func() { _ = res.Body.Close() }()
	var found readiness
	_ = json.NewDecoder(res.Body).Decode(&found)
	switch result, known := found.Checks["notes"]; {
	case !known:
		return "", fmt.Errorf("%w: the API does not show whether notes are late", errNotConfigured)
	case result != "ok":
		return "", cli.Errorf(
			cli.ExitUnavailable,
			"Start a process with the role relay. The checks Temporal and namespace show why notes are late.",
			"%s",
			result,
		)
	}
	return "no note waits longer than 10 seconds", nil
}

// checkSetAsideNotes checks that no note is set aside. berth sets a note aside if Temporal refuses it for a
// reason that concerns only this note.
func checkSetAsideNotes(ctx context.Context, s *cli.Session) (string, error) {
	var o struct {
		SetAside int `json:"set_aside"`
	}
	if err := readAPI(ctx, s, "/operator/v1/notes?state=set-aside&limit=1", &o); err != nil {
		return "", err
	}
	if o.SetAside > 0 {
		return "", cli.Errorf(
			cli.ExitOther,
			"`starter note list --state set-aside` shows the reasons, `starter note retry --all` delivers them now.",
			"Temporal refuses %d notes, which are set aside",
			o.SetAside,
		)
	}
	return "Temporal refuses no note", nil
}

// journalEntry has those attributes of a journal entry that doctor reports.
type journalEntry struct {
	Seq       int64     `json:"seq"`
	Operation string    `json:"operation"`
	Type      string    `json:"object_type"`
	Object    string    `json:"object_id"`
	State     string    `json:"state"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"last_error"`
	CreatedAt time.Time `json:"created_at"`
}

func (e journalEntry) String() string {
	text := fmt.Sprintf("%d (%s %s/%s)", e.Seq, e.Operation, e.Type, e.Object)
	if e.LastError != "" {
		text += ", last error: " + e.LastError
	}
	return text
}

// oldestEntry returns the oldest journal entry in one of the states, or nil if there is none.
func oldestEntry(ctx context.Context, s *cli.Session, states ...string) (*journalEntry, error) {
	var oldest *journalEntry
	for _, state := range states {
		var o struct{ Entries []journalEntry }
		if err := readAPI(ctx, s, "/journal/v1/entries?order=asc&limit=1&state="+state, &o); err != nil {
			return nil, err
		}
		for _, e := range o.Entries {
			if e.State == state && (oldest == nil || e.Seq < oldest.Seq) {
				oldest = &e
			}
		}
	}
	return oldest, nil
}

// checkJournal warns if an administrator has paused the journal, and fails if an entry has failed or waits
// too long.
func checkJournal(ctx context.Context, s *cli.Session) (string, error) {
	var o struct {
		Pause struct {
			Paused bool   `json:"paused"`
			At     string `json:"paused_at"`
			Actor  string `json:"actor"`
			Reason string `json:"reason"`
		} `json:"pause"`
	}
	if err := readAPI(ctx, s, "/journal/v1/pause", &o); err != nil {
		return "", err
	}
	if p := o.Pause; p.Paused {
		return "", fmt.Errorf(
			"%w: the journal is paused by %s since %s: %s; `starter journal resume` ends the pause",
			errWarning, p.Actor, p.At, p.Reason,
		)
	}
	failed, err := oldestEntry(ctx, s, "failed")
	if err != nil {
		return "", err
	}
	if failed != nil {
		return "", cli.Errorf(
			cli.ExitOther,
			fmt.Sprintf(
				"`starter journal retry %d` sends it again, `starter journal skip %[1]d` gives it up.",
				failed.Seq,
			),
			"OpenDaylight has refused entry %s",
			failed,
		)
	}
	waiting, err := oldestEntry(ctx, s, "pending", "processing")
	if err != nil || waiting == nil {
		return "no entry waits", err
	}
	age := s.Now().Sub(waiting.CreatedAt).Round(time.Second)
	if age > maxEntryAge {
		return "", cli.Errorf(
			cli.ExitUnavailable,
			fmt.Sprintf("`starter why journal/%d` says what it waits for.", waiting.Seq),
			"the oldest entry has waited for %s, with %d attempts: entry %s",
			age,
			waiting.Attempts,
			waiting,
		)
	}
	return fmt.Sprintf(
		"the oldest entry has waited for %s, with %d attempts",
		max(age, 0),
		waiting.Attempts,
	), nil
}

// controllerRun has those attributes of a full sync, audit or repair that doctor reports.
type controllerRun struct {
	ID         int64      `json:"id"`
	Kind       string     `json:"kind"`
	Plan       int64      `json:"plan"`
	State      string     `json:"state"`
	FinishedAt *time.Time `json:"finished_at"`
	Progress   []struct{ Missing, Different, Extra int }
}

// checkAudit reports the differences that the newest audit of the controller has found, unless they were
// repaired.
func checkAudit(ctx context.Context, s *cli.Session) (string, error) {
	var o struct{ Runs []controllerRun }
	if err := readAPI(ctx, s, "/journal/v1/runs", &o); err != nil {
		return "", err
	}
	slices.SortFunc(o.Runs, func(a, b controllerRun) int { return int(b.ID - a.ID) })
	done := slices.DeleteFunc(o.Runs,
		func(r controllerRun) bool { return r.State != "done" || r.FinishedAt == nil })
	at := slices.IndexFunc(done, func(r controllerRun) bool { return r.Kind == "audit" })
	if at < 0 {
		return "", fmt.Errorf(
			"%w: no audit has compared OpenDaylight with berth; `starter odl audit` does",
			errNotConfigured,
		)
	}
	audit := done[at]
	var missing, different, extra int
	for _, p := range audit.Progress {
		missing, different, extra = missing+p.Missing, different+p.Different, extra+p.Extra
	}
	summary := fmt.Sprintf("audit %d at %s found %d missing, %d different and %d extra objects",
		audit.ID, audit.FinishedAt.UTC().Format(time.RFC3339), missing, different, extra)
	repaired := slices.ContainsFunc(done[:at],
		func(r controllerRun) bool { return r.Plan == audit.ID || r.Kind == "full-sync" && extra == 0 })
	switch {
	case missing+different+extra == 0:
		return summary, nil
	case repaired:
		return summary + ", which were repaired", nil
	default:
		return "", cli.Errorf(
			cli.ExitOther, fmt.Sprintf("`starter odl repair --plan %d` repairs them.", audit.ID), "%s",
			summary,
		)
	}
}
