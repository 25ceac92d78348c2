package journal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/store/db"
)

// maxPauses is the maximum number of pauses and resumptions in a list.
const maxPauses = 100

// pauseState is the JSON format of the pause of the journal.
type pauseState struct {
	Paused   bool       `json:"paused"`
	PausedAt *time.Time `json:"paused_at"`
	Actor    string     `json:"actor"`
	Reason   string     `json:"reason"`
	Audit    []decision `json:"audit"` // pauses and resumptions, newest first
}

func (h handlers) showPause(r *http.Request) (int, any, error) {
	p, err := h.entries.Paused(r.Context())
	if err != nil {
		return 0, nil, err
	}
	decisions, err := h.entries.PauseDecisions(r.Context(), maxPauses)
	if err != nil {
		return 0, nil, err
	}
	s := pauseState{Audit: []decision{}}
	if p != nil {
		s.Paused, s.PausedAt, s.Actor, s.Reason = true, &p.At, p.Actor, p.Reason
	}
	for _, d := range decisions {
		s.Audit = append(s.Audit, decision(d))
	}
	return http.StatusOK, map[string]pauseState{"pause": s}, nil
}

func (h handlers) pause(r *http.Request) (int, any, error) {
	return h.decidePause(r, h.entries.Pause, "The journal is already paused.")
}

func (h handlers) resume(r *http.Request) (int, any, error) {
	return h.decidePause(r, h.entries.Resume, "The journal is not paused.")
}

// decidePause applies an administrator's decision to pause or resume the journal.
func (h handlers) decidePause(
	r *http.Request,
	decide func(ctx context.Context, actor, reason string) error,
	conflict string,
) (int, any, error) {
	reason, err := decodeReason(r)
	if err != nil {
		return 0, nil, err
	}
	err = decide(r.Context(), identity.From(r.Context()).User, reason)
	if errors.Is(err, db.ErrConflict) {
		return 0, nil, osapi.Fault(http.StatusConflict, "", "%s", conflict)
	}
	if err != nil {
		return 0, nil, err
	}
	return h.showPause(r)
}
