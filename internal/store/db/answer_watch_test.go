package db_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// openWatched opens a database whose answers are watched.
func openWatched(t *testing.T, url string, limits db.AnswerLimits) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{Answers: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// untilSuccess repeats an operation until it succeeds. Until then, each error must say that the database is
// unavailable.
func untilSuccess(t *testing.T, name string, run func() error) {
	t.Helper()
	for err := error(db.ErrUnavailable); err != nil; {
		if err = run(); err != nil && !errors.Is(err, db.ErrUnavailable) {
			t.Fatalf("%s: got error %v, want success or db.ErrUnavailable", name, err)
		}
	}
}

func TestHungDatabase_FailsEveryOperationUntilTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	d := openWatched(t, server.URL,
		db.AnswerLimits{ProbeAfter: 10 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond})
	hang := server.Outages()[0]
	end := sync.OnceFunc(hang.End)
	defer end()
	for name, run := range operations {
		untilSuccess(t, name, func() error { return run(t.Context(), d, nothing, nothing) })
	}

	hang.Begin()
	var waiting sync.WaitGroup
	// these operations wait for an answer, and have no deadline of their own
	for name, run := range operations {
		waiting.Go(func() {
			var unavailable *db.UnavailableError
			if err := run(t.Context(), d, nothing, nothing); !errors.As(err, &unavailable) ||
				unavailable.Reason != db.Hung {
				t.Errorf("%s: got error %v, want the reason %q", name, err, db.Hung)
			}
		})
	}
	waiting.Wait()
	if !d.Hangs() {
		t.Error("Hangs returns false while the database hangs, want true")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for range 1000 { // if each operation waited for the end of a probe, this would take longer than ctx
		for name, run := range operations {
			unavailable := expectUnavailable(t, run(ctx, d, nothing, nothing), db.Hung)
			if unavailable.Unknown {
				t.Fatalf("%s while the database hangs: got an unknown outcome, want a known one", name)
			}
		}
	}

	end()
	for name, run := range operations {
		untilSuccess(t, name, func() error { return run(t.Context(), d, nothing, nothing) })
	}
	if d.Hangs() {
		t.Error("Hangs returns true after the outage, want false")
	}
}

func TestHungDatabase_EndsATransactionBetweenItsStatements(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	d := openWatched(t, server.URL,
		db.AnswerLimits{ProbeAfter: 10 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond})
	hang := server.Outages()[0]
	end := sync.OnceFunc(hang.End)
	defer end()
	untilSuccess(t, "InTx", func() error { return operations["InTx"](t.Context(), d, nothing, nothing) })
	for _, name := range []string{"InTx", "InPreparedTx", "InSnapshot"} {
		begun := false
		untilBegun := func() error { // a slow machine may interrupt the transaction before the outage
			return operations[name](t.Context(), d, func() {
				begun = true
				hang.Begin()
			}, nothing)
		}
		err := untilBegun()
		for !begun {
			err = untilBegun()
		}
		expectUnavailable(t, err, db.Hung)
		hang.End()
		untilSuccess(t, name, func() error { return operations[name](t.Context(), d, nothing, nothing) })
	}
}

func TestStatementThatWaitsForALock_IsNotAHang(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	d := openWatched(t, url, db.AnswerLimits{ProbeAfter: time.Millisecond, ProbeTimeout: 10 * time.Minute})
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`lock table port`)
	done := make(chan error, 1)
	go func() {
		_, err := d.Exec(t.Context(), `delete from port`)
		done <- err
	}()
	rival.AwaitWaiter()
	for probes := db.Probes(d); db.Probes(d) < probes+5; {
		time.Sleep(time.Millisecond)
	}
	if _, err := d.Exec(t.Context(), `select 1`); err != nil {
		t.Fatalf("statement while another one waits for a lock: got error %v, want success", err)
	}
	rival.Do(`rollback`)
	if err := <-done; err != nil {
		t.Errorf("statement that waited for a lock during five probes: got error %v, want success", err)
	}
}
