package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// openPooled opens a store whose transactions run through a PgBouncer, and returns the URL of its database.
func openPooled(t *testing.T) (*store.Store, string) {
	t.Helper()
	url := storetest.URL(t)
	c := storetest.Config()
	c.Pooler = storetest.StartPgBouncer(t, url, db.PoolerSettings()).URL
	s, err := store.Open(t.Context(), url, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, url
}

func TestPooler_DatabaseURLMustNameAServer(t *testing.T) {
	t.Parallel()
	url := storetest.StartPgBouncer(t, storetest.URL(t), db.PoolerSettings()).URL
	_, migrated := db.Migrate(t.Context(), url)
	for use, err := range map[string]error{
		"migration":           migrated,
		"check of the schema": db.CheckSchema(t.Context(), url),
	} {
		if !errors.Is(err, db.ErrPooled) {
			t.Errorf("%s with the URL of a pooler: got error %v, want ErrPooled", use, err)
		}
	}
}

func TestPooler_MustSetTimeLimits(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	err := db.CheckPooler(t.Context(), storetest.StartPgBouncer(t, url, "").URL)
	if !errors.Is(err, db.ErrPoolerSettings) {
		t.Errorf("check of a pooler without settings: got error %v, want ErrPoolerSettings", err)
	}
	for _, part := range []string{"statement_timeout is 0;", "connect_query", "'" + db.PoolerSettings() + "'"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("check of a pooler without settings: got error %v, want it to contain %q", err, part)
		}
	}

	pooler := storetest.StartPgBouncer(t, url, db.PoolerSettings()).URL
	if err := db.CheckPooler(t.Context(), pooler); err != nil {
		t.Errorf("check of a pooler with all settings: got error %v, want nil", err)
	}
	longer := pooler + "?statement_timeout=40000"
	if err := db.CheckPooler(t.Context(), longer); !strings.Contains(fmt.Sprint(err), "statement_timeout is 30000;") {
		t.Errorf("check of a pooler whose URL has another limit: got error %v, want it to name the limit", err)
	}
}

func TestPooler_DocumentationHasItsSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "connect_query='" + db.PoolerSettings() + "'"; !strings.Contains(string(page), want) {
		t.Errorf("docs/operations.md lacks the line of PgBouncer's configuration with %s", want)
	}
}

// The clients use more connections than the pooler has sessions, so that each client soon gets a session in
// which another client has run the same statements.
func TestPooler_TransactionsNeedNoSession(t *testing.T) {
	t.Parallel()
	s, url := openPooled(t)
	storetest.Exec(t, url, `create table counter (id int primary key, n bigint not null, names text[])`)
	storetest.Exec(t, url, `insert into counter values (1, 0, null)`)
	const clients, rounds = 16, 20
	add := `update counter set n = n + $1::bigint, names = $2::text[] where id = 1`
	names := []string{"a", "b"}
	round := func(ctx context.Context) error {
		if err := s.DB.InTx(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(ctx, add, 1, names)
			return err
		}); err != nil {
			return err
		}
		var n int64
		if err := s.DB.InPipelinedTx(ctx, func(b *pgx.Batch) {
			b.Queue(`select n from counter where id = $1 for update`, 1).QueryRow(func(r pgx.Row) error { return r.Scan(&n) })
		}, func(_ pgx.Tx, writes *pgx.Batch) error {
			writes.Queue(`update counter set n = $1::bigint where id = 1`, n+1)
			return nil
		}); err != nil {
			return err
		}
		if err := s.DB.InBatch(ctx, func(b *pgx.Batch) { b.Queue(add, 1, names) }); err != nil {
			return err
		}
		_, err := s.DB.Exec(ctx, add, 1, names)
		return err
	}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range rounds {
				if err := round(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	var n int64
	var limit string
	err := s.DB.QueryRow(t.Context(), `select n, current_setting('statement_timeout') from counter`).Scan(&n, &limit)
	if want := int64(clients * rounds * 4); err != nil || n != want || limit != "30s" {
		t.Errorf("after %d transactions: got n %d, limit %s, error %v; want n %d, limit 30s", want, n, limit, err, want)
	}
}

func TestPooler_NotificationsArriveAndLocksExclude(t *testing.T) {
	t.Parallel()
	s, _ := openPooled(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	woken := make(chan struct{}, 10)
	var listening sync.WaitGroup
	defer listening.Wait()
	listen, stop := context.WithCancel(ctx)
	defer stop()
	listening.Go(func() { _ = s.Outbox.Listen(listen, func() { woken <- struct{}{} }) })
	for _, event := range []string{"the start of LISTEN", "a notification"} {
		select {
		case <-woken:
		case <-ctx.Done():
			t.Fatalf("%s did not wake the relay within ten minutes", event)
		}
		s.DB.NotifyRelays()
	}

	alone, err := s.DB.InOneProcess(ctx, "pooled", func(ctx context.Context) {
		for range 10 {
			second, err := s.DB.InOneProcess(ctx, "pooled", func(context.Context) {})
			if second || err != nil {
				t.Errorf("a second process got the lock: %v, error %v; want false, no error", second, err)
			}
		}
	})
	if !alone || err != nil {
		t.Errorf("the first process got the lock: %v, error %v; want true, no error", alone, err)
	}
}
