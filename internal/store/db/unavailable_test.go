package db_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"berth/internal/devstack"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// proxied is a database that is reached through a TCP proxy.
type proxied struct {
	*db.DB
	*testing.T
	direct string // URL of the database without the proxy
	proxy  *toxiproxy.Proxy
}

// openProxied opens a new database through a proxy. The parameter `parameters`
// is the query string of the URL with which the database is opened.
func openProxied(t *testing.T, parameters string) proxied {
	t.Helper()
	direct := storetest.URL(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	port, err := devstack.Port(0)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "database", fmt.Sprintf("127.0.0.1:%d", port), u.Host)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	// the machine that runs the tests may be slow
	u.Host, u.RawQuery = p.Listen, "connect_timeout=300&"+parameters
	d, err := db.Open(t.Context(), u.String(), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return proxied{d, t, direct, p}
}

// stall makes the proxy forward nothing more in both directions, so that both ends wait.
func (p proxied) stall() {
	p.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(`{"type":"timeout","stream":%q}`, stream))); err != nil {
			p.Fatal(err)
		}
	}
}

// loseAnswers makes the proxy forward no answers of the database, and close the connections soon after.
func (p proxied) loseAnswers() {
	p.Helper()
	if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(`{"type":"timeout","stream":"downstream","attributes":{"timeout":300}}`)); err != nil {
		p.Fatal(err)
	}
}

// operations contains one function for each way in which package db runs a statement. The functions call
// `before` shortly before the statement and `beforeCommit` shortly before the commit, if the commit is not a
// part of the statement.
var operations = map[string]func(ctx context.Context, d *db.DB, before, beforeCommit func()) error{
	"Exec": func(ctx context.Context, d *db.DB, before, _ func()) error {
		before()
		_, err := d.Exec(ctx, `select 1`)
		return err
	},
	"Query": func(ctx context.Context, d *db.DB, before, _ func()) error {
		before()
		_, err := db.QueryAll(ctx, d, pgx.RowTo[int], `select 1`)
		return err
	},
	"QueryRow": func(ctx context.Context, d *db.DB, before, _ func()) error {
		before()
		var n int
		return d.QueryRow(ctx, `select 1`).Scan(&n)
	},
	"SendBatch": func(ctx context.Context, d *db.DB, before, _ func()) error {
		before()
		b := &pgx.Batch{}
		b.Queue(`select 1`)
		return d.SendBatch(ctx, b).Close()
	},
	"InBatch": func(ctx context.Context, d *db.DB, before, _ func()) error {
		before()
		return d.InBatch(ctx, func(b *pgx.Batch) { b.Queue(`select 1`) })
	},
	"InTx": func(ctx context.Context, d *db.DB, before, beforeCommit func()) error {
		return d.InTx(ctx, func(tx db.Tx) error {
			before()
			_, err := tx.Exec(ctx, `select 1`)
			beforeCommit()
			return err
		})
	},
	"InPreparedTx": func(ctx context.Context, d *db.DB, before, beforeCommit func()) error {
		return d.InPreparedTx(ctx, func(tx db.Tx) error {
			before()
			_, err := tx.Exec(ctx, `select 1`)
			beforeCommit()
			return err
		})
	},
	"InPipelinedTx": func(ctx context.Context, d *db.DB, before, beforeCommit func()) error {
		before()
		return d.InPipelinedTx(
			ctx,
			func(b *pgx.Batch) { b.Queue(`select 1`) },
			func(_ pgx.Tx, b *pgx.Batch) error {
				b.Queue(`select 1`)
				beforeCommit()
				return nil
			},
		)
	},
	"InSnapshot": func(ctx context.Context, d *db.DB, before, _ func()) error {
		return d.InSnapshot(ctx, func(tx db.Tx) error {
			before()
			_, err := tx.Exec(ctx, `select 1`)
			return err
		})
	},
}

func nothing() {}

func TestStalledConnection_EndsEveryOperationAtItsDeadline(t *testing.T) {
	t.Parallel()
	for name, run := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openProxied(t, "")
			if err := run(t.Context(), p.DB, nothing, nothing); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := run(ctx, p.DB, func() {
				if ctx.Err() == nil {
					p.stall()
				}
			}, nothing)
			expectUnavailable(t, err, db.NoAnswer)
			if name == "Exec" {
				p.Close() // returns although a connection is stalled
			} else {
				p.proxy.Stop()
				p.Close()
			}
		})
	}
}

func TestLostAnswerToCommit_LeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"InTx", "InPreparedTx", "InPipelinedTx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openProxied(t, "")
			t.Cleanup(p.Close)
			if err := operations[name](t.Context(), p.DB, nothing, nothing); err != nil {
				t.Fatal(err)
			}
			err := operations[name](t.Context(), p.DB, nothing, p.loseAnswers)
			if unavailable := expectUnavailable(t, err, db.Unreachable, db.NoAnswer); !unavailable.Unknown {
				t.Errorf(
					"connection lost before the answer to the commit: got %v with a known outcome, want an unknown one",
					err,
				)
			}
			p.proxy.Stop()
			err = operations[name](t.Context(), p.DB, nothing, nothing)
			if unavailable := expectUnavailable(t, err, db.Unreachable); unavailable.Unknown {
				t.Errorf("no connection: got %v with an unknown outcome, want a known one", err)
			}
		})
	}
}

func expectUnavailable(t *testing.T, err error, reasons ...db.Reason) *db.UnavailableError {
	t.Helper()
	var unavailable *db.UnavailableError
	if !errors.Is(err, db.ErrUnavailable) || !errors.As(err, &unavailable) {
		t.Fatalf("got error %v, want db.ErrUnavailable", err)
	}
	for _, r := range reasons {
		if unavailable.Reason == r {
			return unavailable
		}
	}
	t.Errorf("got the reason %q (%v), want one of %q", unavailable.Reason, err, reasons)
	return unavailable
}

func TestLockOfAnotherSession_EndsTheWait(t *testing.T) {
	t.Parallel()
	p := openProxied(t, "lock_timeout=100ms")
	t.Cleanup(p.Close)
	rival := storetest.NewRival(t, p.direct)
	rival.Do(`begin`)
	rival.Do(`lock table port`)
	err := p.InTx(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `select from port`)
		return err
	})
	if unavailable := expectUnavailable(t, err, db.Locked); unavailable.Unknown {
		t.Error("wait for a lock: got an unknown outcome, want a known one")
	}
}

func TestReadOnlyDatabase_IsUnavailable(t *testing.T) {
	t.Parallel()
	p := openProxied(t, "default_transaction_read_only=on")
	t.Cleanup(p.Close)
	_, err := p.Exec(t.Context(), `delete from port`)
	if unavailable := expectUnavailable(t, err, db.ReadOnly); unavailable.Unknown {
		t.Error("write to a read-only database: got an unknown outcome, want a known one")
	}
}

func TestTerminatedSession_IsUnavailable(t *testing.T) {
	t.Parallel()
	p := openProxied(t, "")
	t.Cleanup(p.Close)
	err := p.InTx(t.Context(), func(tx db.Tx) error {
		var pid int
		if err := tx.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		storetest.Exec(t, p.direct, `select pg_terminate_backend($1)`, pid)
		_, err := tx.Exec(t.Context(), `select pg_sleep(60)`)
		return err
	})
	expectUnavailable(t, err, db.ShuttingDown, db.Unreachable)
}

func TestCancelledCaller_StopsTheStatement(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context, *db.DB) error{
		"InTx": func(ctx context.Context, d *db.DB) error {
			return d.InTx(ctx, func(tx db.Tx) error {
				_, err := tx.Exec(ctx, `lock table port`)
				return err
			})
		},
		"InPipelinedTx": func(ctx context.Context, d *db.DB) error {
			return d.InPipelinedTx(ctx, func(b *pgx.Batch) { b.Queue(`delete from port`) }, func(pgx.Tx, *pgx.Batch) error { return nil })
		},
		"InBatch": func(ctx context.Context, d *db.DB) error {
			return d.InBatch(ctx, func(b *pgx.Batch) { b.Queue(`delete from port`) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openProxied(t, "lock_timeout=0&statement_timeout=0")
			t.Cleanup(p.Close)
			rival := storetest.NewRival(t, p.direct)
			rival.Do(`begin`)
			rival.Do(`lock table port`)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- run(ctx, p.DB) }()
			rival.AwaitWaiter()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, db.ErrUnavailable) {
				t.Errorf("statement of a cancelled caller: got error %v, want context.Canceled", err)
			}
			rival.AwaitNoWaiter()
		})
	}
}

// The process of the statement is lost without a request to cancel the statement.
func TestLostConnection_StopsTheStatement(t *testing.T) {
	t.Parallel()
	p := openProxied(t, "lock_timeout=0&statement_timeout=0")
	t.Cleanup(p.Close)
	rival := storetest.NewRival(t, p.direct)
	rival.Do(`begin`)
	rival.Do(`lock table port`)
	done := make(chan error, 1)
	go func() {
		_, err := p.Exec(t.Context(), `delete from port`)
		done <- err
	}()
	rival.AwaitWaiter()
	p.proxy.Stop()
	expectUnavailable(t, <-done, db.Unreachable)
	rival.AwaitNoWaiter()
}

func TestOutage_EveryOperationNamesTheReason(t *testing.T) {
	t.Parallel()
	server := storetest.NewServer(t)
	// the machine that runs the tests may be slow
	d, err := db.Open(t.Context(), server.URL+"?connect_timeout=300", db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	for _, outage := range server.Outages() {
		if outage.Reads {
			continue // TestReadOnlyDatabase_IsUnavailable tests this reason
		}
		t.Run(outage.Name, func(t *testing.T) {
			end := sync.OnceFunc(outage.End)
			defer end()
			outage.Begin()
			for name, run := range operations {
				expectOutage(t, name, outage.Reason, func() error {
					ctx, cancel := t.Context(), context.CancelFunc(nothing)
					if outage.Reason == db.NoAnswer {
						ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
					}
					defer cancel()
					return run(ctx, d, nothing, nothing)
				})
			}
			end()
			for name, run := range operations {
				for err := error(db.ErrUnavailable); err != nil; {
					if err = run(t.Context(), d, nothing, nothing); err != nil &&
						!errors.Is(err, db.ErrUnavailable) {
						t.Fatalf("%s after the outage: got error %v, want success", name, err)
					}
				}
			}
		})
	}
}

// expectOutage calls `run` during an outage, until `run` no longer uses a connection that was opened before
// the outage.
func expectOutage(t *testing.T, name string, reason db.Reason, run func() error) {
	t.Helper()
	for {
		var unavailable *db.UnavailableError
		err := run()
		if !errors.As(err, &unavailable) {
			t.Fatalf("%s during the outage: got error %v, want db.ErrUnavailable", name, err)
		}
		if unavailable.Reason == reason {
			return
		}
		if unavailable.Reason != db.ShuttingDown && unavailable.Reason != db.Unreachable {
			t.Fatalf("%s during the outage: got the reason %q (%v), want %q",
				name, unavailable.Reason, err, reason)
		}
	}
}
