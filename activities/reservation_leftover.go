package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"berth/internal/lease"
	"berth/internal/text"
)

// leftoverBatch is the maximum number of reservations of ended leases that one call to clearLeftovers
// removes.
const leftoverBatch = 100

// keepLeftover stores a reservation of a deleted lease whose removal from Nova and Neutron has failed.
func (a *Activities) keepLeftover(ctx context.Context, c lease.CloudReservation, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Timeouts.Record)
	defer cancel()
	if err := a.Store.Lease.KeepLeftover(ctx, c); err != nil {
		slog.WarnContext(ctx, "storing a failed removal of a deleted lease's reservation failed",
			"reservation", c.ID, "removal", failure, "error", err)
	}
}

// clearLeftovers removes what ended and deleted leases may have left in Nova and Neutron. clearLeftovers
// continues after a failure; a later call repeats the failed removals. After Timeouts.Leftovers,
// clearLeftovers leaves the remaining ones to the next call.
func (a *Activities) clearLeftovers(ctx context.Context) error {
	all, err := a.Store.Lease.DueLeftovers(ctx, leftoverBatch)
	if err != nil {
		return classify(err)
	}
	for begin := time.Now(); len(all) > 0 && ctx.Err() == nil; all = all[1:] {
		var failure error
		if f := all[0]; a.callsCloud(f.Type) {
			call, cancel := context.WithTimeout(ctx, a.Timeouts.LongCall)
			if err := a.Cloud.Deprovision(call, f.CloudReservation); err != nil {
				failure = errors.New(text.Excerpt(err.Error(), maxErrorText)) // the database cannot store any bytes
			}
			cancel()
		}
		if err := a.Store.Lease.FinishLeftover(ctx, all[0], failure); err != nil {
			return classify(err)
		}
		if time.Since(begin) >= a.Timeouts.Leftovers {
			return nil
		}
	}
	return nil
}
