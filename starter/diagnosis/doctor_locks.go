package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"berth/internal/store/db"
	"berth/starter/cli"
)

const (
	// minLockTime is the age of a transaction from which on doctor warns if others wait for its locks.
	minLockTime = time.Second
	// maxNamedHolders is the maximum number of sessions with locks that doctor names.
	maxNamedHolders = 3
)

// checkLocks warns about sessions of the database that hold locks for which other sessions wait.
func checkLocks(ctx context.Context, s *cli.Session) (string, error) {
	if s.DatabaseURL == "" {
		return "", fmt.Errorf("%w: BERTH_DATABASE_URL is not set", errNotConfigured)
	}
	holders, err := db.LockHolders(ctx, s.DatabaseURL, minLockTime)
	if err != nil {
		return "", fmt.Errorf("%w: the check database shows whether the database answers", errNotConfigured)
	}
	if len(holders) == 0 {
		return fmt.Sprintf("no session waits for a transaction that is older than %s", minLockTime), nil
	}
	var named []string
	for _, h := range holders[:min(len(holders), maxNamedHolders)] {
		named = append(named, describeHolder(h))
	}
	return "", fmt.Errorf("%w: %s; `select pg_terminate_backend(PID)` ends a session",
		errWarning, strings.Join(named, "; "))
}

// describeHolder describes a session that holds a lock, and for how long other sessions have waited for it.
func describeHolder(h db.LockHolder) string {
	lock := "locks on rows"
	if len(h.Tables) > 0 {
		lock = "a lock on " + strings.Join(h.Tables, ", ")
	}
	return fmt.Sprintf(
		"session %d (%s for %s, application %s, user %s) holds %s, for which %d sessions have waited, at most %s",
		h.PID,
		cmp.Or(h.State, "state unknown"),
		h.For.Round(time.Second),
		cmp.Or(h.Application, "unknown"),
		h.User,
		lock,
		h.Waiting,
		h.Longest.Round(time.Second),
	)
}
