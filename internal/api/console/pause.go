package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/journal"
	"berth/internal/store/db"
)

// pauseTitle is the title of the form that pauses and resumes the journal.
const pauseTitle = "Pause and resume the journal"

// pauseView is the content of the form that pauses and resumes the journal.
type pauseView struct {
	Paused    *journal.Pause             // nil: the journal is not paused
	Decisions []journal.OperatorDecision // newest first
	Problem   string                     // why the last request failed; empty: no request has failed
	Reason    string                     // the reason in the last request
	MaxReason int                        // in bytes
}

// showPause shows the form. The form has a page of its own, which gets no server-sent events, because an
// event would replace the text that the operator writes.
func (c *handler) showPause(r *http.Request) (int, any, error) {
	return c.pauseDocument(r, http.StatusOK, pauseView{})
}

func (c *handler) pauseDocument(r *http.Request, status int, v pauseView) (int, any, error) {
	var err error
	if v.Paused, err = c.Journal.Paused(r.Context()); err != nil {
		return 0, nil, err
	}
	if v.Decisions, err = c.Journal.PauseDecisions(r.Context(), pageSize); err != nil {
		return 0, nil, err
	}
	v.MaxReason = journal.MaxReason
	return status, c.document(r, pauseTitle, "pause", v), nil
}

func (c *handler) pause(r *http.Request) (int, any, error) {
	return c.decidePause(r, c.Journal.Pause, "The journal is already paused.")
}

func (c *handler) resume(r *http.Request) (int, any, error) {
	return c.decidePause(r, c.Journal.Resume, "The journal is not paused.")
}

// decidePause applies an operator's decision to pause or resume the journal, as the journal API does, and
// redirects to the page of the journal.
func (c *handler) decidePause(
	r *http.Request,
	decide func(ctx context.Context, actor, reason string) error,
	conflict string,
) (int, any, error) {
	if err := r.ParseForm(); err != nil {
		return 0, nil, osapi.BodyError(err, "The form is malformed.")
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if reason == "" || len(reason) > journal.MaxReason || !osapi.ValidText(reason) {
		return c.pauseDocument(r, http.StatusBadRequest,
			pauseView{Problem: fmt.Sprintf("Enter a reason of 1 to %d bytes.", journal.MaxReason), Reason: strings.ToValidUTF8(reason, "")})
	}
	err := decide(r.Context(), identity.From(r.Context()).User, reason)
	if errors.Is(err, db.ErrConflict) {
		return c.pauseDocument(r, http.StatusConflict, pauseView{Problem: conflict, Reason: reason})
	}
	if err != nil {
		return 0, nil, err
	}
	osapi.Header(r.Context()).Set("Location", basePath(r)+"/journal")
	return http.StatusSeeOther, nil, nil
}
