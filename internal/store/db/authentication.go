package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrOtherAuthentication means that the processes of the database use another value of BERTH_AUTH.
var ErrOtherAuthentication = errors.New("the processes of this database authenticate callers in another way")

// Authentication is how the processes of a database authenticate callers.
type Authentication struct {
	Mode  string // value of BERTH_AUTH; empty: no process has started yet
	SetAt time.Time
}

// ReadAuthentication returns how the processes of the database with the given URL authenticate callers. If no
// process has started yet, ReadAuthentication returns the zero value.
func ReadAuthentication(ctx context.Context, url string) (found Authentication, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		found, err = readAuthentication(ctx, conn)
		return err
	})
	return found, err
}

func readAuthentication(ctx context.Context, conn *pgx.Conn) (found Authentication, err error) {
	err = conn.QueryRow(ctx, `select mode, set_at from authentication`).Scan(&found.Mode, &found.SetAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Authentication{}, nil
	}
	return found, err
}

// BindAuthentication stores how the processes of the database with the given URL authenticate callers, unless
// the database has a value. If the database has another value, BindAuthentication returns
// ErrOtherAuthentication.
func BindAuthentication(ctx context.Context, url, mode string) error {
	return withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		found, err := readAuthentication(ctx, conn)
		if err == nil && found.Mode == "" {
			// A concurrent process may have stored its value since the read. The update, which changes
			// nothing, returns that value.
			err = conn.QueryRow(ctx, `
				insert into authentication (mode)
				values ($1)
				on conflict (single) do update
				set mode = authentication.mode
				returning mode`, mode).Scan(&found.Mode)
		}
		if err != nil {
			return fmt.Errorf("read the authentication of the database: %w", err)
		}
		if found.Mode != mode {
			return fmt.Errorf(
				"%w: BERTH_AUTH=%s, but the database is for BERTH_AUTH=%s: set BERTH_AUTH=%[3]s, or change the database with `starter authentication set %[2]s` and restart all processes",
				ErrOtherAuthentication, mode, found.Mode,
			)
		}
		return nil
	})
}

// SetAuthentication changes how the processes of the database with the given URL authenticate callers, and
// returns the value before. Running processes keep their own value until they are restarted.
func SetAuthentication(ctx context.Context, url, mode string) (before Authentication, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		if before, err = readAuthentication(ctx, conn); err != nil || before.Mode == mode {
			return err
		}
		_, err = conn.Exec(ctx, `
			insert into authentication (mode)
			values ($1)
			on conflict (single) do update
			set mode = excluded.mode, set_at = excluded.set_at`, mode)
		return err
	})
	return before, err
}
