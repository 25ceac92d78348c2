package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/internal/config"
	"berth/internal/store/db"
)

// databaseStartTimeout is how long a starting process waits until the database answers.
const databaseStartTimeout = 30 * time.Second

// checkDatabase returns an error if the settings do not suit the database: its schema, its pooler, or the
// authentication of its other processes.
func checkDatabase(ctx context.Context, cfg config.Config) error {
	if err := checkSchema(ctx, cfg.DatabaseURL); err != nil {
		return err
	}
	if err := checkPooler(ctx, cfg.DatabasePooler); err != nil {
		return err
	}
	return checkAuthentication(ctx, cfg.DatabaseURL, cfg.Auth)
}

// checkSchema returns an error if this program does not work with the schema of the database.
func checkSchema(ctx context.Context, url string) error {
	return awaitDatabase(ctx, func(ctx context.Context) error { return db.CheckSchema(ctx, url) })
}

// checkPooler returns an error if the pooler with the given URL does not give berth's settings to its
// sessions. Without a URL, checkPooler does nothing.
func checkPooler(ctx context.Context, url string) error {
	if url == "" {
		return nil
	}
	return awaitDatabase(ctx, func(ctx context.Context) error { return db.CheckPooler(ctx, url) })
}

// checkAuthentication returns an error if BERTH_AUTH is not set, or if the processes of the database use
// another value. A process with the role temporal that has no authentication beside an API with Keystone
// would accept the unsigned reports of any client of Temporal.
func checkAuthentication(ctx context.Context, url, mode string) error {
	if mode == "" {
		return errors.New(
			"BERTH_AUTH is not set: set BERTH_AUTH=keystone, or BERTH_AUTH=noauth to accept every token on loopback; all processes of a database need the same value",
		)
	}
	return awaitDatabase(ctx,
		func(ctx context.Context) error { return db.BindAuthentication(ctx, url, mode) })
}

// refusals are the errors of a check that a repetition of the check does not change.
var refusals = []error{
	db.ErrSchemaTooOld,
	db.ErrSchemaTooNew,
	db.ErrSchemaUnreleased,
	db.ErrOtherAuthentication,
	db.ErrPooled,
	db.ErrPoolerSettings,
}

// awaitDatabase repeats a check of the database until the database answers, for the time
// databaseStartTimeout.
func awaitDatabase(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, databaseStartTimeout)
	defer cancel()
	failures := failureLog{message: "waiting for the database"}
	for {
		err := check(ctx)
		isRefusal := func(refusal error) bool { return errors.Is(err, refusal) }
		if err == nil || slices.ContainsFunc(refusals, isRefusal) {
			return err
		}
		failures.add(ctx, err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("the database does not answer (BERTH_DATABASE_URL): %w", err)
		case <-time.After(time.Second):
		}
	}
}
