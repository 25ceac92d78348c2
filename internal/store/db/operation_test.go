package db_test

import (
	"testing"
	"time"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// A transaction whose rest is limited ends although each of its waits for a lock may last for ever, and its
// connection is free again.
func TestLimitRest_EndsTheWaitAndFreesTheConnection(t *testing.T) {
	t.Parallel()
	p := openProxied(t, "lock_timeout=0&statement_timeout=0&pool_max_conns=8")
	t.Cleanup(p.Close)
	rival := storetest.NewRival(t, p.direct)
	wait := func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `delete from port`)
		return err
	}
	for name, run := range map[string]func(func(db.Tx) error) error{
		"InTx":         func(f func(db.Tx) error) error { return p.InTx(t.Context(), f) },
		"InPreparedTx": func(f func(db.Tx) error) error { return p.InPreparedTx(t.Context(), f) },
		"Savepoint": func(f func(db.Tx) error) error {
			return p.InTx(t.Context(), func(tx db.Tx) error { return db.Savepoint(t.Context(), tx, f) })
		},
	} {
		rival.Do(`begin`)
		rival.Do(`lock table port`)
		for range 20 { // more transactions than a pool has connections
			err := run(func(tx db.Tx) error {
				tx.LimitRest(time.Millisecond)
				tx.LimitRest(time.Hour) // has no effect
				return wait(tx)
			})
			if unavailable := expectUnavailable(t, err, db.Locked); unavailable.Unknown || !db.WasLocked(err) {
				t.Errorf("%s: got %v, unknown outcome %v; want a known outcome and WasLocked",
					name, err, unavailable.Unknown)
			}
		}
		rival.AwaitNoWaiter() // no session of the database waits any more
		rival.Do(`rollback`)

		if err := run(func(tx db.Tx) error {
			tx.LimitRest(time.Hour)
			return wait(tx)
		}); err != nil {
			t.Errorf("%s within its limit: %v", name, err)
		}
	}
}
