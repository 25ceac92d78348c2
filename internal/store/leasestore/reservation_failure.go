package leasestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
)

// RecordCallFailure stores that a call to Nova, Neutron, Keystone or Placement for a reservation has failed,
// and returns the delay until the next attempt. If `retries` is false, the caller does not retry the call.
// The delay is then 0, and the lease's workflow makes the next attempt at once. If the reservation does not
// exist, RecordCallFailure changes nothing.
func (s *Store) RecordCallFailure(
	ctx context.Context,
	reservation uuid.UUID,
	f lease.CallError,
	retries bool,
) (delay time.Duration, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		var status lease.Status
		var attempts int
		err := tx.QueryRow(ctx, `
			select l.status, coalesce((select attempts from reservation_failure where reservation_id = r.id), 0)
			from reservation r
			join lease l on l.id = r.lease_id
			where r.id = $1
			for key share of r`, reservation).Scan(&status, &attempts)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read failures of reservation %s: %w", reservation, err)
		}
		if delay = 0; retries {
			delay = lease.RetryDelay(status, attempts+1)
		}
		if _, err := tx.Exec(ctx, `
			insert into reservation_failure (reservation_id, party, call, error, next_at)
			values ($1, $2, $3, $4, clock_timestamp() + $5::interval)
			on conflict (reservation_id) do update
			set party = excluded.party, call = excluded.call, error = excluded.error, last_at = clock_timestamp(), next_at = excluded.next_at,
				attempts = reservation_failure.attempts + 1`, reservation, f.Party, f.Call, f.Error(), delay); err != nil {
			return fmt.Errorf("record a failed call for reservation %s: %w", reservation, err)
		}
		return nil
	})
	return delay, err
}

// ClearCallFailures deletes the stored call failures of reservations, because a later call has succeeded.
func (s *Store) ClearCallFailures(ctx context.Context, reservations ...uuid.UUID) error {
	if _, err := s.db.Exec(ctx, clearFailuresSQL, reservations); err != nil {
		return fmt.Errorf("delete the failures of reservations' calls: %w", err)
	}
	return nil
}

const clearFailuresSQL = `delete from reservation_failure where reservation_id = any($1)`

// queueFailures queues the query for the last failed calls of reservations. The query must run after the
// query of queueReservations, because it stores each failure in a reservation that queueReservations has
// read.
func queueFailures(batch *pgx.Batch, ids []uuid.UUID, byID map[uuid.UUID]*lease.Lease) {
	batch.Queue(`
		select r.lease_id, r.id, f.party, f.call, f.error, f.since, f.last_at, f.next_at, f.attempts
		from reservation r
		join reservation_failure f on f.reservation_id = r.id
		where r.lease_id = any($1)`, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var of, id uuid.UUID
			var f lease.CallFailure
			if err := rows.Scan(&of, &id, &f.Party, &f.Call, &f.Error, &f.Since, &f.LastAt, &f.NextAt, &f.Attempts); err != nil {
				return err
			}
			for i := range byID[of].Reservations {
				if r := &byID[of].Reservations[i]; r.ID == id {
					r.Failure = &f
				}
			}
		}
		return rows.Err()
	})
}
