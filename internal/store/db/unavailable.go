package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// ErrUnavailable means that the database cannot execute the statement or transaction now, but probably can
// later. The errors that wrap ErrUnavailable have the type *UnavailableError.
var ErrUnavailable = errors.New("the database is unavailable")

// Reason says why the database is unavailable. The text of a Reason continues the sentence "The database …".
type Reason string

// The reasons why the database is unavailable.
const (
	Unreachable   Reason = "cannot be reached"
	NoAnswer      Reason = "has not answered in time"
	Hung          Reason = "does not answer"
	ShuttingDown  Reason = "is starting or shutting down"
	ReadOnly      Reason = "accepts no writes"
	NoConnection  Reason = "has no free connection"
	NoResources   Reason = "has no resources left"
	Locked        Reason = "keeps a row or table locked for another session"
	Contended     Reason = "has too many competing transactions"
	ProcessEnding Reason = "is no longer used, because this process is stopping"
)

// UnavailableError is an error of a statement or transaction that the database could not execute.
type UnavailableError struct {
	Reason Reason
	// Unknown is true if the database may have committed the transaction, because the answer to the commit is
	// missing. If Unknown is false, the transaction has changed nothing.
	Unknown bool
	err     error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the database %s: %v", e.Reason, e.err)
}

// Is reports whether the target is ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns the error of the connection or of PostgreSQL.
func (e *UnavailableError) Unwrap() error { return e.err }

// WasLocked reports whether the error err means that a transaction has not got a lock in time.
func WasLocked(err error) bool {
	var unavailable *UnavailableError
	return errors.As(err, &unavailable) && unavailable.Reason == Locked
}

// Abandoned returns the error of a write whose caller stopped waiting with the error err, for example because
// the deadline of the request has passed. The parameter `begun` says whether the write was already being
// executed, so that its outcome is unknown.
func Abandoned(err error, begun bool) error { return classify(err, begun) }

// classify returns an *UnavailableError if the error err means that the database is unavailable. classify
// returns every other error unchanged. The error of a cancelled context is also returned unchanged, because
// the caller no longer waits for a result. The parameter `committing` says whether the commit may have been
// sent to the database. pgconn.SafeToRetry does not say this reliably: if a connection is closed after the
// commit was sent, pgx reports the same error as for a connection that was closed before.
func classify(err error, committing bool) error {
	var known *UnavailableError
	if err == nil || errors.As(err, &known) {
		return err
	}
	reason := reasonOf(err)
	if reason == "" {
		return err
	}
	return &UnavailableError{Reason: reason, Unknown: committing && !isRolledBack(err), err: err}
}

// isRolledBack reports whether PostgreSQL has answered that it has rolled the transaction back. An answer
// with the severity FATAL ends the session and does not say whether a commit was executed.
func isRolledBack(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}

// reasonOf returns why the database is unavailable, or the empty string if the error err does not mean that
// the database is unavailable.
func reasonOf(err error) Reason {
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	if errors.As(err, &pg) {
		reason := reasonOfCode(pg.Code)
		// for example 55000, if the database accepts no connections
		if reason == "" && errors.As(err, &connect) {
			return Unreachable
		}
		return reason
	}
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return NoAnswer
	case errors.Is(err, puddle.ErrClosedPool):
		return ProcessEnding
	case errors.As(err, &connect),
		errors.As(err, &network),
		errors.Is(err, pgconn.ErrConnClosed),
		errors.Is(err, net.ErrClosed),
		errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return Unreachable
	}
	return ""
}

// reasonOfCode returns the reason for an error code of PostgreSQL (SQLSTATE).
func reasonOfCode(code string) Reason {
	switch code {
	case "25006": // read_only_sql_transaction
		return ReadOnly
	case "25P03",
		"25P04",
		"57014": // idle_in_transaction_session_timeout, transaction_timeout, query_canceled
		return NoAnswer
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return Contended
	case "53300": // too_many_connections
		return NoConnection
	case "55P03": // lock_not_available
		return Locked
	case "57P01", "57P02", "57P03": // admin_shutdown, crash_shutdown, cannot_connect_now
		return ShuttingDown
	case "3D000", "57P04", "58030": // invalid_catalog_name, database_dropped, io_error
		return Unreachable
	}
	switch {
	case strings.HasPrefix(code, "53"): // insufficient_resources, for example disk_full
		return NoResources
	case strings.HasPrefix(code, "08"),
		strings.HasPrefix(code, "28"): // connection_exception, invalid_authorization_specification
		return Unreachable
	}
	return ""
}
