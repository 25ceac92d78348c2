package journalstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Breaker is what all processes know of one controller in trouble. As long as there is no trouble nobody asks it.
type Breaker struct {
	store      *Store
	controller string
}

// Breaker is that of the controller at that URL.
func (s *Store) Breaker(controller string) *Breaker { return &Breaker{s, controller} }

// Opened says that the controller is in trouble, and that nobody shall probe it for so long. Who says so later than
// another one changes nothing.
func (b *Breaker) Opened(ctx context.Context, probeIn time.Duration) error {
	_, err := b.store.db.Exec(ctx, `
		insert into mirror_breaker as b (controller, open, since, probe_at)
		values ($1, true, clock_timestamp(), clock_timestamp() + $2::interval)
		on conflict (controller) do update
		set open = true, since = excluded.since, probe_at = excluded.probe_at
		where not b.open`, b.controller, probeIn)
	if err != nil {
		return fmt.Errorf("open the breaker: %w", err)
	}
	return nil
}

// Probe is zero if the caller may send a probe, and then nobody else may for so long; else it is how long to wait. It is
// zero, too, if nobody finds the controller in trouble.
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
		return 0, fmt.Errorf("ask for a probe: %w", err)
	}
	return wait, nil
}

// Closed says that the controller is back.
func (b *Breaker) Closed(ctx context.Context) error {
	_, err := b.store.db.Exec(ctx, `
		update mirror_breaker
		set open = false, since = clock_timestamp()
		where controller = $1 and open`, b.controller)
	if err != nil {
		return fmt.Errorf("close the breaker: %w", err)
	}
	return nil
}
