package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"berth/internal/store"
)

// databasePatience is how long a process waits for a database that does not answer at its start.
const databasePatience = 30 * time.Second

// awaitSchema refuses a database whose schema is older than this program. A newer one will do.
func awaitSchema(ctx context.Context, url string) error {
	all, err := migrations(ctx, url)
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

func migrations(ctx context.Context, url string) ([]store.Migration, error) {
	ctx, cancel := context.WithTimeout(ctx, databasePatience)
	defer cancel()
	for told := false; ; told = true {
		all, err := store.Migrations(ctx, url)
		if err == nil {
			return all, nil
		}
		if !told {
			slog.WarnContext(ctx, "waiting for the database", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the database does not answer (BERTH_DATABASE_URL): %w", err)
		case <-time.After(time.Second):
		}
	}
}
