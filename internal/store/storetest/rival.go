package storetest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Rival is a second writer in a test about concurrent transactions: the test runs the transaction of the
// second writer statement by statement.
type Rival struct {
	T  *testing.T
	DB *pgx.Conn
}

// NewRival connects a second writer to the database with the given URL.
func NewRival(t *testing.T, url string) Rival { return Rival{T: t, DB: Connect(t, url)} }

// RunAgainst runs the statement `first` in an open transaction of the second writer, then calls `f`. When `f`
// waits for a lock of the second writer, the second writer runs the statements `then` and commits. RunAgainst
// returns the error of `f`.
func (r Rival) RunAgainst(f func() error, first string, then ...string) error {
	r.T.Helper()
	watch := Connect(r.T, r.DB.Config().ConnString())
	r.Do(`begin`)
	r.Do(first)
	done := make(chan error, 1)
	go func() { done <- f() }()
	if err, ended := r.awaitWaiters(watch, 1, done); ended {
		r.T.Errorf(
			"f returned error %v without waiting for a lock of the second writer's transaction, want it to wait",
			err,
		)
		r.Do(`rollback`)
		return err
	}
	for _, sql := range then {
		r.Do(sql)
	}
	r.Do(`commit`)
	return <-done
}

// Do runs a statement in the transaction of the second writer, and fails the test if the statement fails.
func (r Rival) Do(sql string) {
	r.T.Helper()
	if _, err := r.DB.Exec(r.T.Context(), sql); err != nil {
		r.T.Fatalf("run the statement %s of the second writer: %v", sql, err)
	}
}

// AwaitWaiter blocks until a session of the test's database waits for a lock. In most tests, the second
// writer holds this lock.
func (r Rival) AwaitWaiter() {
	r.T.Helper()
	r.AwaitWaiters(1, nil)
}

// AwaitWaiters blocks until n sessions of the test's database wait for locks. If `done` gets an error before,
// the result `ended` is true.
func (r Rival) AwaitWaiters(n int, done <-chan error) (err error, ended bool) {
	r.T.Helper()
	return r.awaitWaiters(Connect(r.T, r.DB.Config().ConnString()), n, done)
}

func (r Rival) awaitWaiters(watch *pgx.Conn, n int, done <-chan error) (err error, ended bool) {
	r.T.Helper()
	for r.waiters(watch) < n {
		select {
		case err := <-done:
			return err, true
		default:
		}
	}
	return nil, false
}

// AwaitNoWaiter blocks until no session of the test's database waits for a lock.
func (r Rival) AwaitNoWaiter() {
	r.T.Helper()
	watch := Connect(r.T, r.DB.Config().ConnString())
	for r.waiters(watch) > 0 {
	}
}

// waiters returns the number of sessions of the test's database that wait for a lock.
func (r Rival) waiters(watch *pgx.Conn) (n int) {
	r.T.Helper()
	err := watch.QueryRow(r.T.Context(), `
		select (select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
		from pg_sleep(0.005)`).Scan(&n)
	if err != nil {
		r.T.Fatal(err)
	}
	return n
}
