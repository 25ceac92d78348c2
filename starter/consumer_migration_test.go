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
	"berth/internal/store/storetest"
)

// migrateProcess prepares the command `starter placement migrate-consumers` as a separate process.
// migrateProcess returns the process, which the caller must start, and a buffer for the output of the
// process.
func migrateProcess(ctx context.Context, t *testing.T, url string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self)
	// TestMain runs main for a program with this name
	c.Args = []string{
		"starter",
		"placement",
		"migrate-consumers",
		"--batch",
		"10",
	}
	c.Env = append(os.Environ(), "BERTH_URL="+url, "BERTH_DATA="+t.TempDir())
	output := &strings.Builder{}
	c.Stdout, c.Stderr = output, output
	return c, output
}

func TestMigrateConsumers_ContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `insert into consumer (uuid) select gen_random_uuid() from generate_series(1, 95)`)
	api := operator.New(operator.Options{
		Inventory:  s.Inventory,
		Network:    s.Network,
		Agents:     s.Agents,
		Outbox:     s.Outbox,
		Mirror:     s.Mirror,
		Identity:   identity.Noauth{},
		Incomplete: inventory.Owner{Project: "x", User: "y"},
	})
	var batches atomic.Int64
	process := make(chan *os.Process, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if batches.Add(1) == 4 { // kill the command during the fourth batch
			if err := (<-process).Kill(); err != nil {
				t.Error(err)
			}
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	db := storetest.Connect(t, url)
	unrecorded := func() (n int) {
		t.Helper()
		if err := db.QueryRow(ctx, `select count(*) from consumer where project is null`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	c, output := migrateProcess(ctx, t, server.URL)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	process <- c.Process
	if err := c.Wait(); err == nil {
		t.Errorf(
			"run the migration and kill it in its fourth batch: got a successful end, want a kill; output: %s",
			output,
		)
	}
	server.CloseClientConnections() // wait until the API has finished the fourth batch
	for unrecorded() == 65 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if n := unrecorded(); n != 55 {
		t.Errorf("consumers without a record after the kill: got %d, want 55; output: %s", n, output)
	}

	c, output = migrateProcess(ctx, t, server.URL)
	if err := c.Run(); err != nil || !strings.Contains(output.String(), "55 consumers were migrated") ||
		!strings.Contains(output.String(), "10 migrated, 45 remaining") {
		t.Errorf(
			"run the migration again: got the output %s and error %v, want 10, then 55 migrated consumers",
			output,
			err,
		)
	}
	if n := unrecorded(); n != 0 {
		t.Errorf("consumers without a record after the second run: got %d, want none", n)
	}
}
