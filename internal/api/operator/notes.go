package operator

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/store/outbox"
)

// The states of a note, a row of the outbox: the note waits for its delivery to Temporal, or it is set aside
// because Temporal refuses it.
const (
	stateWaiting  = "waiting"
	stateSetAside = "set-aside"
)

// notes handles the requests about notes that are not delivered to Temporal.
type notes struct{ store *outbox.Store }

// note is the JSON format of a note.
type note struct {
	WorkflowID  string     `json:"workflow_id"`
	Workflow    string     `json:"workflow_type"`
	State       string     `json:"state"`
	Attempts    int        `json:"attempts"`
	LastError   string     `json:"last_error"`
	CreatedAt   time.Time  `json:"created_at"`
	SetAsideAt  *time.Time `json:"set_aside_at"`
	NextAttempt time.Time  `json:"next_attempt"`
}

// list lists notes, oldest first. The query ?state=set-aside selects the notes that are set aside; the query
// ?state=waiting selects all other notes.
func (n notes) list(r *http.Request) (int, any, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	var setAside *bool
	if states, ok := query["state"]; ok {
		only := states[0] == stateSetAside
		if len(states) > 1 || !only && states[0] != stateWaiting {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'state' must be '%s' or '%s'.",
				stateSetAside, stateWaiting)
		}
		setAside = &only
		delete(query, "state")
	}
	numbers, err := positiveNumbers(query.Encode(), map[string]int64{"limit": defaultLimit})
	if err != nil {
		return 0, nil, err
	}
	found, err := n.store.Notes(r.Context(), setAside, int(min(numbers["limit"], maxLimit)))
	if err != nil {
		return 0, nil, err
	}
	count, err := n.store.CountSetAside(r.Context())
	if err != nil {
		return 0, nil, err
	}
	out := make([]note, len(found))
	for i, s := range found {
		out[i] = note{
			s.WorkflowID,
			s.Workflow,
			stateWaiting,
			s.Attempts,
			s.LastError,
			s.CreatedAt,
			s.SetAsideAt,
			s.DueAt,
		}
		if s.SetAsideAt != nil {
			out[i].State = stateSetAside
		}
	}
	return http.StatusOK, map[string]any{"notes": out, "set_aside": count}, nil
}

// maxRetried is the maximum number of workflow IDs in one request.
const maxRetried = 1000

// retryBody is the JSON format of a request that retries notes.
type retryBody struct {
	WorkflowIDs []string `json:"workflow_ids"`
}

// retry makes relays deliver, without further delay, notes that are set aside: the notes of the workflow IDs
// in the body or, if the body names no workflow IDs, all notes that are set aside. The answer contains the
// number of these notes.
func (n notes) retry(r *http.Request) (int, any, error) {
	var body retryBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if len(body.WorkflowIDs) > maxRetried {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "",
			"'workflow_ids' must have at most %s elements.", strconv.Itoa(maxRetried))
	}
	retried, err := n.store.RetrySetAside(r.Context(), body.WorkflowIDs)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]int64{"retried": retried}, nil
}
