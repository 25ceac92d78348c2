package journalstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Breaker is the state of the circuit breaker of one controller, shared by all processes. Each process also
// has a breaker in its memory, and reads the shared state only while its own breaker is open.
type Breaker struct {
	store      *Store
	controller string
}

// Breaker returns the circuit breaker of the controller with the given URL.
func (s *Store) Breaker(controller string) *Breaker { return &Breaker{s, controller} }

// Opened records that the breaker is open and that the first probe (a trial request) is allowed after the
// duration `probeIn`. Opened changes nothing if the breaker is open already.
func (b *Breaker) Opened(ctx context.Context, probeIn time.Duration) error {
	_, err := b.store.db.Exec(ctx, `
		insert into mirror_breaker as b (controller, open, since, probe_at)
		values ($1, true, clock_timestamp(), clock_timestamp() + $2::interval)
		on conflict (controller) do update
		set open = true, since = excluded.since, probe_at = excluded.probe_at
		where not b.open`, b.controller, probeIn)
	if err != nil {
		return fmt.Errorf("record that the circuit breaker is open: %w", err)
	}
	return nil
}

// Probe returns 0 if the caller may send a probe, and then allows no other probe for the duration `every`.
// Otherwise Probe returns the time to wait. Probe also returns 0 if the breaker is closed.
func (b *Breaker) Probe(ctx context.Context, every time.Duration) (wait time.Duration, err error) {
	err = b.store.db.QueryRow(ctx, `
		with held as materialized (
			select greatest(probe_at - clock_timestamp(), interval '0') as wait
			from mirror_breaker
			where controller = $1 and open
			for no key update),
		mine as (
			update mirror_breaker
			set probe_at = clock_timestamp() + $2::interval
			from held
			where controller = $1 and wait = interval '0')
		select wait from held`, b.controller, every).Scan(&wait)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("request a probe of the circuit breaker: %w", err)
	}
	return wait, nil
}

// Closed records that the breaker is closed.
func (b *Breaker) Closed(ctx context.Context) error {
	_, err := b.store.db.Exec(ctx, `
		update mirror_breaker
		set open = false, since = clock_timestamp()
		where controller = $1 and open`, b.controller)
	if err != nil {
		return fmt.Errorf("record that the circuit breaker is closed: %w", err)
	}
	return nil
}
