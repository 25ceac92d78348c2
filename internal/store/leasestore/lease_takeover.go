package leasestore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// defaultBatchTime is the default of Config.BatchTime. It is a little longer than the maximum time of the
// calls to Nova and Neutron for one batch.
const defaultBatchTime = 3200 * time.Millisecond

// TakeOverLeases takes over the starts and ends of leases that another process has begun and not finished
// within Config.BatchTime, probably because that process was killed. The results are the same as those of
// BeginDueLeases. A step that TakeOverLeases cannot take over is left to the workflow of the lease, which
// gets a nudge.
func (s *Store) TakeOverLeases(
	ctx context.Context,
	withCloudReservations bool,
) (started, ready []StartedStep, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		started, ready = nil, nil
		ids, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], `
			select id
			from lease
			where batch_until <= clock_timestamp()
			order by batch_until, id
			limit $1
			for update skip locked`, advanceBatchSize)
		if err != nil {
			return fmt.Errorf("lock leases whose batch was not finished in time: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		var others []contract.Nudge
		for _, l := range leases {
			switch {
			case l.Status == lease.Starting && !l.DeleteRequested:
				started = append(started, StartedStep{Lease: l, Step: lease.StepStart})
			case l.Status == lease.Terminating && !l.DeleteRequested:
				started = append(started, StartedStep{Lease: l, Step: lease.StepEnd})
			default:
				others = append(others, nudgeLease(l, false))
			}
		}
		if err := clearBatchTimes(ctx, tx, ids); err != nil {
			return err
		}
		if err := outbox.Enqueue(ctx, tx, others...); err != nil || len(started) == 0 {
			return err
		}
		if err := setBatchTimes(ctx, tx, started); err != nil {
			return err
		}
		ready, err = bisect(ctx, tx, started, addStartingToInventory)
		if err == nil && withCloudReservations {
			err = addCloudReservations(ctx, tx, ready)
		}
		return err
	})
	return started, ready, err
}

// setBatchTimes stores the time until which the steps must be finished. After this time, TakeOverLeases takes
// the steps over.
func setBatchTimes(ctx context.Context, tx *transaction, steps []StartedStep) error {
	ids := make([]uuid.UUID, len(steps))
	for i, step := range steps {
		ids[i] = step.ID
	}
	_, err := tx.Exec(
		ctx, `update lease set batch_until = clock_timestamp() + $2::interval where id = any($1)`,
		ids, cmp.Or(tx.config.BatchTime, defaultBatchTime),
	)
	if err != nil {
		return fmt.Errorf("store the time until which a batch must be finished: %w", err)
	}
	return nil
}

// clearBatchTimes stores that no batch performs the steps of the leases any more.
func clearBatchTimes(ctx context.Context, tx *transaction, leases []uuid.UUID) error {
	if _, err := tx.Exec(ctx, `update lease set batch_until = null where id = any($1) and batch_until is not null`, leases); err != nil {
		return fmt.Errorf("store that a batch is finished: %w", err)
	}
	return nil
}
