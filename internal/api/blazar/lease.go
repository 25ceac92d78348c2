package blazar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
)

type leaseView struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	User      string `json:"user_id"`
	Project   string `json:"project_id"`
	StartDate string `json:"start_date"`
	EndDate   string `json:"end_date"`
	// always null: berth acts with its own credentials and needs no trust
	Trust        *string      `json:"trust_id"`
	Status       lease.Status `json:"status"`
	Degraded     bool         `json:"degraded"`
	CreatedAt    string       `json:"created_at"`
	UpdatedAt    *string      `json:"updated_at"`
	Reservations []any        `json:"reservations"` // see reservationViewOf
	Events       []eventView  `json:"events"`
	Why          *whyView     `json:"berth:why,omitempty"`
}

type eventView struct {
	ID        string            `json:"id"`
	Lease     string            `json:"lease_id"`
	Type      lease.EventType   `json:"event_type"`
	Time      string            `json:"time"`
	Status    lease.EventStatus `json:"status"`
	CreatedAt string            `json:"created_at"`
	UpdatedAt *string           `json:"updated_at"`
}

type whyView struct {
	Sentence    string           `json:"sentence"`
	Waiting     []waitingView    `json:"waiting"`
	FailedCalls []failedCallView `json:"failed_calls"`
}

// failedCallView is the JSON object of a failed call to another service, such as Nova.
type failedCallView struct {
	Party       string     `json:"party"`
	Call        string     `json:"call"`
	Error       string     `json:"error"`
	Since       time.Time  `json:"since"`
	LastAttempt time.Time  `json:"last_attempt"`
	NextAttempt *time.Time `json:"next_attempt"`
	Attempts    int        `json:"attempts"`
}

type waitingView struct {
	For      string     `json:"for"`
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
}

func viewOf(l lease.Lease) leaseView {
	v := leaseView{
		ID:           l.ID.String(),
		Name:         l.Name,
		User:         l.User,
		Project:      l.Project,
		StartDate:    date(l.StartAt),
		EndDate:      date(l.EndAt),
		Status:       l.Status,
		Degraded:     l.Degraded,
		CreatedAt:    stamp(l.CreatedAt),
		UpdatedAt:    stampOrNull(l.UpdatedAt),
		Reservations: []any{},
		Events:       []eventView{},
	}
	for _, r := range l.Reservations {
		v.Reservations = append(v.Reservations, reservationViewOf(v.ID, r))
	}
	for _, e := range l.Events {
		v.Events = append(v.Events, eventView{
			ID:        e.ID.String(),
			Lease:     v.ID,
			Type:      e.Type,
			Time:      date(e.At),
			Status:    e.Status,
			CreatedAt: stamp(e.CreatedAt),
			UpdatedAt: stampOrNull(e.UpdatedAt),
		})
	}
	return v
}

// leaseResponse returns the JSON object of a lease, with the explanation of what the lease waits for. The
// explanation does not name leases and hosts that the caller may not see.
func leaseResponse(r *http.Request, l lease.Lease) map[string]any {
	v := viewOf(l)
	l = accessOf(r).redact(l)
	sentence, waiting := lease.Explain(l, time.Now())
	v.Why = &whyView{Sentence: sentence, Waiting: []waitingView{}, FailedCalls: []failedCallView{}}
	for _, f := range l.FailedCalls() {
		v.Why.FailedCalls = append(v.Why.FailedCalls, failedCallView{
			Party:       f.Party,
			Call:        f.Call,
			Error:       f.Error,
			Since:       f.Since,
			LastAttempt: f.LastAt,
			NextAttempt: f.NextAt,
			Attempts:    f.Attempts,
		})
	}
	for _, w := range waiting {
		v.Why.Waiting = append(v.Why.Waiting, waitingView{For: w.For, Since: w.Since, Deadline: w.Deadline})
	}
	return map[string]any{"lease": v}
}

// listLeases lists the leases that the caller may see.
func (b *handler) listLeases(r *http.Request) (int, any, error) {
	a := accessOf(r)
	filter, check := a.leaseFilter()
	return leaseList(b.Store, a, filter, check).answer(r)
}

// leaseList returns the list of the leases that match the filter. If check is true, the rule decides for each
// of these leases whether the caller may see it.
func leaseList(s *leasestore.Store, a access, filter lease.Filter, check bool) list[lease.Lease] {
	l := list[lease.Lease]{
		name: "leases",
		noun: "lease",
		read: func(ctx context.Context, after lease.Lease, most int) ([]lease.Lease, bool, error) {
			filter.After, filter.Limit = lease.Position{CreatedAt: after.CreatedAt, ID: after.ID}, most
			return s.Leases(ctx, filter)
		},
		find: func(ctx context.Context, marker string) (lease.Lease, error) {
			id, _ := osapi.UUID(marker)
			return visibleLease(ctx, s, a, id)
		},
		view: func(one lease.Lease) any { return viewOf(one) },
	}
	if check {
		l.visible = func(one lease.Lease) bool { return a.allows("leases:get", one) }
	}
	return l
}

// visibleLease reads a lease. The error wraps db.ErrNotFound if the caller may not see the lease.
func visibleLease(ctx context.Context, s *leasestore.Store, a access, id uuid.UUID) (lease.Lease, error) {
	found, err := s.Lease(ctx, id)
	if err == nil && !a.allows("leases:get", found) {
		return lease.Lease{}, fmt.Errorf("%w: lease %s", db.ErrNotFound, id)
	}
	return found, err
}

func (b *handler) createLease(r *http.Request) (int, any, error) {
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	d, err := b.draftOf(r, o)
	if err != nil {
		return 0, nil, err
	}
	if err := b.checkNew(r, d); err != nil {
		return 0, nil, err
	}
	l, err := b.Store.CreateLease(r.Context(), d)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, leaseResponse(r, l), nil
}

func (b *handler) showLease(r *http.Request) (int, any, error) {
	l, err := b.lease(r, "leases:get")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, leaseResponse(r, l), nil
}

func (b *handler) updateLease(r *http.Request) (int, any, error) {
	l, err := b.lease(r, "leases:put")
	if err != nil {
		return 0, nil, err
	}
	o, err := body(r)
	if err != nil {
		return 0, nil, err
	}
	c, err := changeOf(o)
	if err != nil {
		return 0, nil, err
	}
	if len(o) == 0 {
		return http.StatusOK, leaseResponse(r, l), nil
	}
	changed, err := b.changeLease(r, l, c)
	if err != nil {
		return 0, nil, leaseNotFound(err, l.ID.String())
	}
	return http.StatusOK, leaseResponse(r, changed), nil
}

// changeLease changes the lease, if the enforcement service allows it. If another request changes the lease
// after the enforcement service has seen it, changeLease asks again, because the service may allow each of
// two changes and refuse both of them together.
func (b *handler) changeLease(r *http.Request, l lease.Lease, c lease.Change) (lease.Lease, error) {
	if b.Enforce == nil || c.OnlyRenames() {
		return b.Store.UpdateLease(r.Context(), l.ID, c)
	}
	for {
		if err := b.checkChange(r, l, c); err != nil {
			return l, err
		}
		changed, err := b.Store.UpdateUnchangedLease(r.Context(), l, c)
		if !errors.Is(err, db.ErrConflict) {
			return changed, err
		}
		if l, err = b.lease(r, "leases:put"); err != nil {
			return l, err
		}
	}
}

// deleteLease requests the deletion of a lease and waits until the deletion is complete. If the deletion
// takes longer than deletionWait, deleteLease answers 202 with the lease.
func (b *handler) deleteLease(r *http.Request) (int, any, error) {
	l, err := b.lease(r, "leases:delete")
	if err != nil {
		return 0, nil, err
	}
	done, err := b.Store.DeleteLease(r.Context(), l.ID)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return noContent(r)
	case err != nil:
		return 0, nil, err
	case done:
		return noContent(r)
	}
	return b.awaitDeletion(r, l.ID)
}

// Pauses between the reads of awaitDeletion. Most deletions end within a fraction of a second; the others
// wait for Nova or Neutron, so further reads find the lease unchanged.
const (
	firstDeletionPause = 50 * time.Millisecond
	maxDeletionPause   = 500 * time.Millisecond
)

// nextDeletionPause returns the pause that follows the given one.
func nextDeletionPause(pause time.Duration) time.Duration {
	return min(pause+pause/2, maxDeletionPause)
}

// awaitDeletion answers when the lease does not exist any more, or after deletionWait. It has no lease in
// memory while it waits.
func (b *handler) awaitDeletion(r *http.Request, id uuid.UUID) (int, any, error) {
	var gone bool
	var failed error
	waited := osapi.WaitWithoutSlot(r, func() { gone, failed = b.leaseDisappears(r.Context(), id) })
	switch {
	case failed != nil:
		return 0, nil, failed
	case gone:
		return noContent(r)
	case waited != nil:
		return 0, nil, waited
	}
	// read at the end of the wait, because the lease in the answer must be the current one
	l, err := b.Store.Lease(r.Context(), id)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return noContent(r)
	case err != nil:
		return 0, nil, err
	}
	return http.StatusAccepted, leaseResponse(r, l), nil
}

// leaseDisappears waits until the lease does not exist any more, for deletionWait at most.
func (b *handler) leaseDisappears(ctx context.Context, id uuid.UUID) (gone bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, b.deletionWait)
	defer cancel()
	pause := firstDeletionPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-waiting.Done():
			return false, ctx.Err()
		case <-timer.C:
		}
		if exists, err := b.Store.LeaseExists(ctx, id); err != nil || !exists {
			return err == nil, err
		}
		pause = nextDeletionPause(pause)
		timer.Reset(pause)
	}
}

// noContent answers 204 with the Content-Type of JSON, as Blazar does.
func noContent(r *http.Request) (int, any, error) {
	osapi.Header(r.Context()).Set("Content-Type", "application/json")
	return http.StatusNoContent, nil, nil
}

// lease reads the lease whose ID is in the path. lease refuses a caller whom the rule does not allow the
// operation on this lease.
func (b *handler) lease(r *http.Request, rule string) (lease.Lease, error) {
	text := r.PathValue("id")
	id, ok := osapi.UUID(text)
	if !ok {
		return lease.Lease{}, objectNotFound("lease_id", text)
	}
	l, err := b.Store.Lease(r.Context(), id)
	if err != nil {
		return l, leaseNotFound(err, text)
	}
	if !accessOf(r).allows(rule, l) {
		return lease.Lease{}, forbidden(rule)
	}
	return l, nil
}

func leaseNotFound(err error, id string) error {
	if errors.Is(err, db.ErrNotFound) {
		return objectNotFound("lease_id", id)
	}
	return err
}

func objectNotFound(key, id string) *osapi.Error {
	return osapi.Fault(http.StatusNotFound, "", "Object with {'%s': '%s'} not found", key, excerpt(id))
}
