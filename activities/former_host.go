package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"berth/internal/store/db"
)

const (
	// formerHostBatch is the maximum number of reservations whose former hosts one call to HealReservations
	// examines.
	formerHostBatch = 100
	// formerHostTime is the time after which one call to HealReservations examines no further former hosts.
	formerHostTime = time.Minute
)

// releaseFormerHosts releases those hosts that healing has replaced in running leases and that have no server
// of the lease: other reservations can then get them. It examines the reservations in a random order, so that
// slow or many ones keep the others waiting only for some calls. If a call fails, releaseFormerHosts
// continues with the other reservations and returns the errors.
func (a *Activities) releaseFormerHosts(ctx context.Context) error {
	if a.Cloud == nil {
		return nil
	}
	all, err := a.Store.Lease.ReservationsWithFormerHosts(ctx, formerHostBatch)
	if err != nil {
		return err
	}
	begin := time.Now()
	var errs []error
	for _, id := range all {
		if time.Since(begin) > formerHostTime || ctx.Err() != nil {
			break
		}
		errs = append(errs, a.releaseFormerHostsOf(ctx, id))
	}
	return errors.Join(errs...)
}

func (a *Activities) releaseFormerHostsOf(ctx context.Context, id uuid.UUID) error {
	c, err := a.Store.Lease.CloudReservation(ctx, id)
	if errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound) {
		return nil // the lease ends, or has been deleted meanwhile
	}
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, a.Timeouts.LongCall)
	defer cancel()
	empty, err := a.Cloud.EmptyFormerHosts(call, c)
	if len(empty) > 0 {
		err = errors.Join(err, a.Store.Lease.ReleaseFormerHosts(ctx, id, empty))
	}
	return err
}
