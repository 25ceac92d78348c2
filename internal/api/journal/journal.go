// Package journal is the administrators' API of the OpenDaylight journal, at /journal/v1. With this API,
// administrators list journal entries, see why an entry waits, retry or skip failed entries, pause and resume
// the journal, and start runs: full syncs, recoveries, audits and repairs.
package journal

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/mirrorstore"
)

// New returns the API, which uses the journal entries in the store `entries`, and the full syncs, recoveries,
// audits and repairs in `runs`.
func New(entries *journalstore.Store, runs *mirrorstore.Store, id identity.Authenticator) *osapi.API {
	h := handlers{entries, runs}
	return &osapi.API{
		Prefix:   "/journal/v1",
		Identity: id,
		Reserved: true,
		Fail:     osapi.WriteError,
		Before:   osapi.RequireJSON,
		Routes: []osapi.Route{
			{Method: http.MethodGet, Path: "/entries", Handle: osapi.AdminOrServiceOnly(h.list)},
			{
				Method:    http.MethodPost,
				Path:      "/entries",
				Handle:    osapi.AdminOrServiceOnly(h.record),
				LargeBody: true,
			},
			{Method: http.MethodGet, Path: "/entries/{seq}", Handle: osapi.AdminOrServiceOnly(h.show)},
			{
				Method:     http.MethodPost,
				Path:       "/entries/{seq}/retry",
				Handle:     osapi.AdminOnly(h.retry),
				Repeatable: true,
			},
			{
				Method:     http.MethodPost,
				Path:       "/entries/{seq}/skip",
				Handle:     osapi.AdminOnly(h.skip),
				Repeatable: true,
			},
			{Method: http.MethodGet, Path: "/analysis", Handle: osapi.AdminOnly(h.analysis)},
			{Method: http.MethodGet, Path: "/pause", Handle: osapi.AdminOnly(h.showPause)},
			{
				Method:     http.MethodPost,
				Path:       "/pause",
				Handle:     osapi.AdminOnly(h.pause),
				Repeatable: true,
			},
			{
				Method:     http.MethodPost,
				Path:       "/resume",
				Handle:     osapi.AdminOnly(h.resume),
				Repeatable: true,
			},
			{Method: http.MethodGet, Path: "/runs", Handle: osapi.AdminOnly(h.listRuns)},
			{Method: http.MethodPost, Path: "/runs", Handle: osapi.AdminOnly(h.startRun)},
			{Method: http.MethodGet, Path: "/runs/{id}", Handle: osapi.AdminOnly(h.showRun)},
			{Method: http.MethodGet, Path: "/runs/{id}/findings", Handle: osapi.AdminOnly(h.findings)},
		},
	}
}

// entry is the JSON format of an entry.
type entry struct {
	Seq        int64             `json:"seq"`
	Operation  journal.Operation `json:"operation"`
	Type       string            `json:"object_type"`
	Object     string            `json:"object_id"`
	Name       string            `json:"name"`
	Project    string            `json:"project_id"`
	State      journal.State     `json:"state"`
	Attempts   int               `json:"attempts"`
	Failures   int               `json:"failures"`
	LastError  string            `json:"last_error"`
	CreatedAt  time.Time         `json:"created_at"`
	TakenAt    *time.Time        `json:"taken_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	RetryAt    *time.Time        `json:"retry_at"` // time of the next attempt
	// the entry whose workflow made the last attempt; null: the entry's own workflow made it
	CarriedBy *int64 `json:"carried_by"`
}

func entryOf(e journal.Entry) entry {
	return entry{
		Seq:        e.Seq,
		Operation:  e.Operation,
		Type:       e.Object.Type,
		Object:     e.Object.ID,
		Name:       e.Name,
		Project:    e.Project,
		State:      e.State,
		Attempts:   e.Attempt,
		Failures:   e.Failures,
		LastError:  e.LastError,
		CreatedAt:  e.CreatedAt,
		TakenAt:    e.TakenAt,
		FinishedAt: e.FinishedAt,
		RetryAt:    e.RetryAt,
		CarriedBy:  e.SentBy,
	}
}

// entryDetails is the JSON format of a single entry.
type entryDetails struct {
	entry
	Data     json.RawMessage `json:"data"`
	Blockers []blocker       `json:"blockers"`
	Audit    []decision      `json:"audit"`
	Why      why             `json:"berth:why"`
}

type blocker struct {
	Seq       int64             `json:"seq"`
	Operation journal.Operation `json:"operation"`
	Type      string            `json:"object_type"`
	Object    string            `json:"object_id"`
	State     journal.State     `json:"state"`
	Since     time.Time         `json:"since"`
}

// decision is an administrator's decision about the entry.
type decision struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Action string    `json:"action"`
	Reason string    `json:"reason"`
}

type why struct {
	Sentence string    `json:"sentence"`
	Waiting  []waiting `json:"waiting"`
}

type waiting struct {
	For      string     `json:"for"`
	Since    *time.Time `json:"since"`
	Deadline *time.Time `json:"deadline"`
}

func detailsOf(
	e journal.Entry,
	blockers []journal.Blocker,
	decisions []journal.OperatorDecision,
	p *journal.Pause,
) map[string]entryDetails {
	s := entryDetails{
		entry:    entryOf(e),
		Data:     e.Data,
		Blockers: []blocker{},
		Audit:    []decision{},
		Why:      why{Sentence: journal.Sentence(e, blockers, p), Waiting: []waiting{}},
	}
	for _, b := range blockers {
		s.Blockers = append(s.Blockers,
			blocker{b.Seq, b.Operation, b.Object.Type, b.Object.ID, b.State, b.Since})
	}
	for _, w := range journal.WaitingFor(e, blockers, p) {
		s.Why.Waiting = append(s.Why.Waiting, waiting{For: w.For, Since: &w.Since})
	}
	for _, d := range decisions {
		s.Audit = append(s.Audit, decision(d))
	}
	return map[string]entryDetails{"entry": s}
}

type handlers struct {
	entries *journalstore.Store
	runs    *mirrorstore.Store
}

func (h handlers) list(r *http.Request) (int, any, error) {
	f, err := filter(r.URL.RawQuery)
	if err != nil {
		return 0, nil, err
	}
	entries, err := h.entries.JournalEntries(r.Context(), f)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"entries": entriesOf(entries)}, nil
}

func entriesOf(entries []journal.Entry) []entry {
	all := make([]entry, len(entries))
	for i, e := range entries {
		all[i] = entryOf(e)
	}
	return all
}

func (h handlers) show(r *http.Request) (int, any, error) {
	seq, err := seqOf(r)
	if err != nil {
		return 0, nil, err
	}
	return h.showEntry(r, seq)
}

func (h handlers) showEntry(r *http.Request, seq int64) (int, any, error) {
	e, blockers, decisions, err := h.entries.JournalEntry(r.Context(), seq)
	if err != nil {
		return 0, nil, entryError(seq, err)
	}
	p, err := h.entries.Paused(r.Context())
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, detailsOf(e, blockers, decisions, p), nil
}

func (h handlers) retry(r *http.Request) (int, any, error) {
	seq, err := seqOf(r)
	if err != nil {
		return 0, nil, err
	}
	if _, err := h.entries.RetryEntry(r.Context(), seq, identity.From(r.Context()).User); err != nil {
		return 0, nil, entryError(seq, err)
	}
	return h.showEntry(r, seq)
}

// entryError translates an error of the store about one entry to an HTTP error.
func entryError(seq int64, err error) error {
	switch {
	case errors.Is(err, db.ErrNotFound):
		return osapi.Fault(http.StatusNotFound, "", "There is no journal entry %d.", seq)
	case errors.Is(err, db.ErrConflict):
		return osapi.Fault(http.StatusConflict, "", "%s.", conflict(err))
	default:
		return err
	}
}

// conflict returns the reason of a conflict from an error of the store. conflict drops the prefixes that the
// store's functions have added to the reason.
func conflict(err error) string {
	_, words, _ := strings.Cut(err.Error(), db.ErrConflict.Error()+": j")
	return "J" + words
}

func (h handlers) skip(r *http.Request) (int, any, error) {
	seq, err := seqOf(r)
	if err != nil {
		return 0, nil, err
	}
	reason, err := decodeReason(r)
	if err != nil {
		return 0, nil, err
	}
	if _, err := h.entries.SkipEntry(r.Context(), seq, identity.From(r.Context()).User, reason); err != nil {
		return 0, nil, entryError(seq, err)
	}
	return h.showEntry(r, seq)
}

// reasonBody is the JSON format of a request with a reason.
type reasonBody struct {
	Reason string `json:"reason"`
}

// decodeReason reads the body {"reason": "…"}. If the request has no body or the reason is empty,
// decodeReason returns "no reason given".
func decodeReason(r *http.Request) (string, error) {
	raw, err := osapi.Body(r)
	if err != nil {
		return "", err
	}
	if len(raw) == 0 {
		return "no reason given", nil
	}
	var body reasonBody
	if err := osapi.CheckJSON(raw); err != nil {
		return "", osapi.Fault(http.StatusBadRequest, "", "Malformed JSON: %s", err)
	}
	if err := osapi.DecodeStrict(raw, &body); err != nil {
		return "", err
	}
	switch {
	case body.Reason == "":
		return "no reason given", nil
	case len(body.Reason) > journal.MaxReason:
		return "", osapi.Fault(http.StatusBadRequest, "", "The reason is longer than %d bytes.", journal.MaxReason)
	case strings.ContainsRune(body.Reason, 0):
		return "", osapi.Fault(http.StatusBadRequest, "", "The reason contains a NUL character.")
	}
	return body.Reason, nil
}
