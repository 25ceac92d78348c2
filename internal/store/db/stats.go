package db

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PoolStats describes the use of one pool of connections.
type PoolStats struct {
	Name              string
	Used, Idle, Limit int32
	Waiting           int           // callers that wait for a connection now
	Waits             int64         // callers that had to wait since the start of the process
	WaitTime          time.Duration // how long they have waited
}

// Connections returns the maximum number of connections in each of the pools `pool` and `prepared`.
func (d *DB) Connections() int { return int(d.pool.Stat().MaxConns()) }

// Pools returns the use of each pool.
func (d *DB) Pools() []PoolStats {
	var all []PoolStats
	for _, p := range []struct {
		name string
		pool *pgxpool.Pool
	}{{"general", d.pool}, {"prepared", d.prepared}, {"reserve", d.reserve}} {
		stat, a := p.pool.Stat(), d.admissions[p.pool]
		s := PoolStats{
			Name:  p.name,
			Used:  stat.AcquiredConns(),
			Idle:  stat.IdleConns(),
			Limit: stat.MaxConns(),
		}
		a.mu.Lock()
		s.Waiting, s.Waits, s.WaitTime = a.waiting, a.waits, a.waitTime
		a.mu.Unlock()
		all = append(all, s)
	}
	return all
}

// retryReasons are the reasons for which transactions are repeated.
var retryReasons = [...]string{"deadlock", "serialization", "overtaken"}

// retryReason returns the index in retryReasons of the reason why a transaction with the error err is
// repeated.
func retryReason(err error) int {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40P01":
			return 0
		case "40001":
			return 1
		}
	}
	return 2
}

// Retries returns the number of repeated transactions, by reason.
func (d *DB) Retries() map[string]int64 {
	all := map[string]int64{}
	for i, reason := range retryReasons {
		all[reason] = d.retried[i].Load()
	}
	return all
}
