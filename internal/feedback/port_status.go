package feedback

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"berth/internal/network"
	"berth/internal/panics"
	"berth/internal/store/db"
)

// compareStatuses adds to `pending` each port whose status on the controller differs from the port's status
// in the database.
func (l *Listener) compareStatuses(ctx context.Context, pending map[uuid.UUID]int) error {
	const page = 500
	statusOf := make(map[uuid.UUID]string, page)
	flush := func() error {
		ids := make([]uuid.UUID, 0, len(statusOf))
		for id := range statusOf {
			ids = append(ids, id)
		}
		ports, err := l.Store.WiredPorts(ctx, ids)
		for _, p := range ports {
			if _, reportable := eventOf(statusOf[p.ID], p.AwaitsL2); reportable {
				pending[p.ID] += 0
			}
		}
		clear(statusOf)
		return err
	}
	err := l.ODL.PortStatuses(ctx, func(id, status string) error {
		if port, err := uuid.Parse(id); err == nil {
			statusOf[port] = status
		}
		if len(statusOf) < page {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// eventOf translates a port's status on the controller into the event that the Listener reports to the store.
// The parameter `waits` says whether the port has a provisioning block of the entity L2. If there is no event
// to report, the result `reportable` is false.
func eventOf(status string, waits bool) (event string, reportable bool) {
	switch {
	case status == network.Active && waits:
		return network.ReportComplete, true
	case status == network.Down && !waits:
		return network.ReportLost, true
	default:
		return "", false
	}
}

// reportPorts reads the status of each pending port from the controller and reports the status to the store.
func (l *Listener) reportPorts(ctx context.Context, pending map[uuid.UUID]int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for id, tries := range pending {
		group.Go(func() (err error) {
			defer panics.Recover(ctx, "the report of a port's status", &err)
			return l.reportPort(ctx, id, tries)
		})
	}
	return group.Wait()
}

// reportPort reads the status of a port from the controller and reports the status to the store, for the
// port's current binding. reportPort reads the binding before the status, and reports the status only if the
// controller already knows the binding, because a status of an earlier binding must not change the port.
func (l *Listener) reportPort(ctx context.Context, id uuid.UUID, tries int) error {
	ports, err := l.Store.WiredPorts(ctx, []uuid.UUID{id})
	if err != nil || len(ports) == 0 {
		return err
	}
	if !ports[0].InSync {
		l.postpone(id, tries+1)
		return nil
	}
	status, err := l.ODL.PortStatus(ctx, id.String())
	if err != nil {
		return err
	}
	p := ports[0]
	event, reportable := eventOf(status, p.AwaitsL2)
	if !reportable {
		return nil
	}
	_, err = l.Store.ReportPort(ctx, id, []network.Report{{
		Entity:   network.L2,
		Host:     p.Host,
		Event:    event,
		Revision: p.BindingRevision,
	}})
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}

// postpone schedules another read of a port's status after a short pause. When the read of a port's status
// has been postponed maxPostponed times, postpone schedules a comparison of all ports at the next refresh
// instead.
func (l *Listener) postpone(id uuid.UUID, tries int) {
	if tries > maxPostponed {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.compareAgain = true
		return
	}
	time.AfterFunc(min(l.PollInterval, time.Second)/2, func() {
		l.update(func() {
			if _, newer := l.pending[id]; !newer {
				l.pending[id] = tries
			}
		})
	})
}
