package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"berth/internal/store/db"
)

// databaseStartTimeout is how long a starting process waits until the database answers.
const databaseStartTimeout = 30 * time.Second

// checkSchema returns an error if the database lacks migrations that this program contains. checkSchema accepts a database to which
// more migrations are applied than this program contains.
func checkSchema(ctx context.Context, url string) error {
	all, err := readMigrations(ctx, url)
	if err != nil {
		return err
	}
	missing := 0
	for _, m := range all {
		if !m.Applied {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("the database lacks %d of %d migrations: run `starter migrate` first", missing, len(all))
	}
	return nil
}

// readMigrations returns all migrations that this program contains, and whether each migration is applied to the database. If the database
// does not answer, readMigrations retries for the time databaseStartTimeout.
func readMigrations(ctx context.Context, url string) ([]db.Migration, error) {
	ctx, cancel := context.WithTimeout(ctx, databaseStartTimeout)
	defer cancel()
	for logged := false; ; logged = true {
		all, err := db.Migrations(ctx, url)
		if err == nil {
			return all, nil
		}
		if !logged {
			slog.WarnContext(ctx, "waiting for the database", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the database does not answer (BERTH_DATABASE_URL): %w", err)
		case <-time.After(time.Second):
		}
	}
}
