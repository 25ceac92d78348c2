package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"berth/internal/store/db"
)

// databaseStartTimeout is how long a starting process waits until the database answers.
const databaseStartTimeout = 30 * time.Second

// checkSchema returns an error if this program does not work with the schema of the database: the schema is too old or too new. If the
// database does not answer, checkSchema retries for the time databaseStartTimeout.
func checkSchema(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, databaseStartTimeout)
	defer cancel()
	for logged := false; ; logged = true {
		err := db.CheckSchema(ctx, url)
		if err == nil || errors.Is(err, db.ErrSchemaTooOld) || errors.Is(err, db.ErrSchemaTooNew) {
			return err
		}
		if !logged {
			slog.WarnContext(ctx, "waiting for the database", "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the database does not answer (BERTH_DATABASE_URL): %w", err)
		case <-time.After(time.Second):
		}
	}
}
