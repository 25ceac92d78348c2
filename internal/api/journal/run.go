package journal

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
)

// run is the JSON format of a run: a full sync, a recovery, an audit or a repair.
type run struct {
	ID         int64                  `json:"id"`
	Kind       string                 `json:"kind"`
	Plan       int64                  `json:"plan,omitempty"`
	State      journal.RunState       `json:"state"`
	Actor      string                 `json:"actor"`
	Reason     string                 `json:"reason"`
	Sentence   string                 `json:"sentence"`
	Note       string                 `json:"note"`
	Progress   []journal.TypeProgress `json:"progress"`
	CreatedAt  time.Time              `json:"created_at"`
	UpdatedAt  time.Time              `json:"updated_at"`
	FinishedAt *time.Time             `json:"finished_at"`
}

func runOf(r journal.Run) run {
	return run{
		ID:         r.ID,
		Kind:       r.Kind,
		Plan:       r.Plan,
		State:      r.State,
		Actor:      r.Actor,
		Reason:     r.Reason,
		Sentence:   r.Sentence(),
		Note:       r.Note,
		Progress:   append([]journal.TypeProgress{}, r.Progress...),
		CreatedAt:  r.CreatedAt,
		UpdatedAt:  r.UpdatedAt,
		FinishedAt: r.FinishedAt,
	}
}

// finding is the JSON format of a finding of an audit: an object that the controller lacks, an object that
// differs from berth's object, or an object that only the controller has. The field `operation` is the
// operation that repairs the object.
type finding struct {
	Type       string            `json:"object_type"`
	Object     string            `json:"object_id"`
	Kind       string            `json:"kind"`
	Attributes []string          `json:"attributes"`
	Operation  journal.Operation `json:"operation"`
	Outcome    string            `json:"outcome"` // result of the repair
}

// runBody is the JSON format of a request that starts a run.
type runBody struct {
	Kind   string `json:"kind"`
	Plan   int64  `json:"plan"`
	Reason string `json:"reason"`
}

// startRun starts a run: a full sync, a recovery, an audit or a repair. If a run of the same kind is active,
// startRun starts no run and returns the active run.
func (h handlers) startRun(r *http.Request) (int, any, error) {
	var body runBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	switch {
	case !slices.Contains(journal.RunKinds, body.Kind):
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'kind' must be one of %s.",
			strings.Join(journal.RunKinds, ", "))
	case (body.Kind == journal.RepairKind) != (body.Plan != 0):
		return 0, nil, osapi.Fault(http.StatusBadRequest, "",
			"'plan' is required for a repair and not allowed otherwise: it is the number of an audit.")
	case len(body.Reason) > journal.MaxReason:
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "The reason is longer than %d bytes.",
			journal.MaxReason)
	}
	p, err := h.entries.Paused(r.Context())
	if err != nil {
		return 0, nil, err
	}
	if p != nil {
		return 0, nil, osapi.Fault(http.StatusConflict, "", "The run does not start, because %s.",
			p.Sentence())
	}
	started, err := h.runs.StartRun(r.Context(), journal.Run{
		Kind:   body.Kind,
		Plan:   body.Plan,
		Actor:  identity.From(r.Context()).User,
		Reason: body.Reason,
	})
	switch {
	case errors.Is(err, db.ErrNotFound):
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "Audit %d does not exist.", body.Plan)
	case errors.Is(err, db.ErrConflict):
		return 0, nil, osapi.Fault(http.StatusConflict, "",
			"Run %d is not a finished audit, or the repair of another audit is running.", body.Plan)
	case err != nil:
		return 0, nil, err
	}
	return http.StatusAccepted, map[string]run{"run": runOf(started)}, nil
}

// defaultRuns is the maximum number of runs in a list whose request names no limit.
const defaultRuns = 50

// listRuns lists runs, newest first. The query parameter `before` is the number of the last run on the
// previous page.
func (h handlers) listRuns(r *http.Request) (int, any, error) {
	before, limit := int64(0), defaultRuns
	err := readQuery(r.URL.RawQuery, "before and limit", func(name, value string) (known, valid bool) {
		switch name {
		case "before":
			before, valid = positive(value)
		case "limit":
			limit, valid = limitOf(value)
		default:
			return false, false
		}
		return true, valid
	})
	if err != nil {
		return 0, nil, err
	}
	runs, err := h.runs.Runs(r.Context(), before, limit)
	if err != nil {
		return 0, nil, err
	}
	all := make([]run, len(runs))
	for i, found := range runs {
		all[i] = runOf(found)
	}
	return http.StatusOK, map[string]any{"runs": all}, nil
}

func (h handlers) showRun(r *http.Request) (int, any, error) {
	found, err := h.findRun(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]run{"run": runOf(found)}, nil
}

func (h handlers) findRun(r *http.Request) (journal.Run, error) {
	id, ok := positive(r.PathValue("id"))
	notFound := osapi.Fault(http.StatusNotFound, "", "Run %q does not exist.", r.PathValue("id"))
	if !ok {
		return journal.Run{}, notFound
	}
	found, err := h.runs.Run(r.Context(), id)
	if errors.Is(err, db.ErrNotFound) {
		return found, notFound
	}
	return found, err
}

// findings lists the findings of an audit in the order in which a repair would repair them. The query
// parameter after=TYPE/ID is the object of the last finding on the previous page.
func (h handlers) findings(r *http.Request) (int, any, error) {
	found, err := h.findRun(r)
	if err != nil {
		return 0, nil, err
	}
	if found.Plan != 0 {
		found.ID = found.Plan
	}
	var after journal.Ref
	for name, given := range r.URL.Query() {
		ok := false
		if name == "after" && len(given) == 1 {
			after.Type, after.ID, ok = strings.Cut(given[0], "/")
		}
		if !ok {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "",
				"The only query parameter is 'after': TYPE/ID of the previous page's last finding.")
		}
	}
	findings, err := h.runs.Findings(r.Context(), found.ID, after, maxLimit)
	if err != nil {
		return 0, nil, err
	}
	all := make([]finding, len(findings))
	for i, f := range findings {
		all[i] = finding{f.Object.Type, f.Object.ID, f.Kind, f.Attributes, f.RepairOperation(), f.Outcome}
	}
	return http.StatusOK, map[string]any{"findings": all}, nil
}

// analysis reports how long the newest completed entries took. The query parameter `last` is the number of
// completed journal entries that analysis evaluates; the query parameter `slowest` is the number of the
// slowest entries that the answer lists.
func (h handlers) analysis(r *http.Request) (int, any, error) {
	last, slowest := int64(10_000), int64(10)
	for name, given := range r.URL.Query() {
		ok := false
		switch name {
		case "last":
			last, ok = positive(given[0])
		case "slowest":
			slowest, ok = positive(given[0])
		}
		if !ok || len(given) != 1 || last > 1_000_000 || slowest > maxLimit {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "",
				"The query parameters are last, 1 to 1000000, and slowest, 1 to %d.", maxLimit)
		}
	}
	a, err := h.entries.Analyze(r.Context(), int(last), int(slowest))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"analysis": analysisOf(a)}, nil
}

// slowEntry is the JSON format of one of the slowest entries.
type slowEntry struct {
	Seq       int64             `json:"seq"`
	Operation journal.Operation `json:"operation"`
	Type      string            `json:"object_type"`
	Object    string            `json:"object_id"`
	Seconds   float64           `json:"seconds"`
	Attempts  int               `json:"attempts"`
}

func analysisOf(a journalstore.Analysis) map[string]any {
	slowest := make([]slowEntry, len(a.Slowest))
	for i, e := range a.Slowest {
		slowest[i] = slowEntry{
			e.Seq,
			e.Operation,
			e.Object.Type,
			e.Object.ID,
			e.FinishedAt.Sub(e.CreatedAt).Seconds(),
			e.Attempt,
		}
	}
	return map[string]any{
		"entries":  a.Entries,
		"average":  a.Average,
		"p50":      a.P50,
		"p90":      a.P90,
		"p99":      a.P99,
		"p999":     a.P999,
		"attempts": a.Attempts,
		"slowest":  slowest,
	}
}
