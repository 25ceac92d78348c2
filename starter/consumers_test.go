package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/api/operator"
	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// migration runs the command as a process of its own and returns it with all that it says.
func migration(ctx context.Context, t *testing.T, url string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self)
	c.Args = []string{"starter", "placement", "migrate-consumers", "--batch", "10"} // by that name the test's program is starter
	c.Env = append(os.Environ(), "BERTH_URL="+url, "BERTH_DATA="+t.TempDir())
	said := &strings.Builder{}
	c.Stdout, c.Stderr = said, said
	return c, said
}

func TestKilledMigrationIsResumed(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	storetest.Exec(t, url, `insert into consumer (uuid) select gen_random_uuid() from generate_series(1, 95)`)
	api := operator.New(s, identity.Noauth{}, inventory.Owner{Project: "x", User: "y"})
	var batches atomic.Int64
	victim := make(chan *os.Process, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if batches.Add(1) == 4 { // it dies while its fourth batch is on the way
			if err := (<-victim).Kill(); err != nil {
				t.Error(err)
			}
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	db := storetest.Connect(t, url)
	unrecorded := func() (n int) {
		t.Helper()
		if err := db.QueryRow(ctx, `select count(*) from consumer where project is null`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	c, said := migration(ctx, t, server.URL)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	victim <- c.Process
	if err := c.Wait(); err == nil {
		t.Errorf("it was not killed: %s", said)
	}
	server.CloseClientConnections() // and wait for what it left behind
	for unrecorded() == 65 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if n := unrecorded(); n != 55 {
		t.Errorf("%d are left by the one that was killed, which said %s", n, said)
	}

	c, said = migration(ctx, t, server.URL)
	if err := c.Run(); err != nil || !strings.Contains(said.String(), "55 consumers were migrated") || !strings.Contains(said.String(), "10 migrated, 45 to go") {
		t.Errorf("the second said %s, error %v", said, err)
	}
	if n := unrecorded(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
