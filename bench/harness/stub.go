package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/devstack"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
)

// StubCommand is the command-line argument that makes the bench program serve the stubs of OpenDaylight and
// Nova and the baseline of the reads. The stubs run in a separate process, because the real services also run
// in other processes than berth.
const StubCommand = "serve-stubs"

// MainVariable is the environment variable that makes a test binary behave as the bench program.
const MainVariable = "BERTH_TEST_BENCH_MAIN"

// databaseVariable is the environment variable that tells the stub process the URL of berth's database.
const databaseVariable = "BERTH_BENCH_DATABASE_URL"

// stubs holds the URLs of the servers in the stub process.
type stubs struct {
	ODL, Nova    string
	ReadBaseline string // see serveReadBaseline
	// URL of a second stub of OpenDaylight, for the figures that send requests without berth's journal
	SyncODL string
	Traces  string // URL of a receiver of traces that ignores them
}

// serveStubs prints the URLs in one line of JSON and serves until ctx ends.
func serveStubs(ctx context.Context, stdout io.Writer) error {
	odl, err := devstack.Serve(0, odltest.New())
	if err != nil {
		return err
	}
	defer odl.Stop()
	syncODL, err := devstack.Serve(0, odltest.New())
	if err != nil {
		return err
	}
	defer syncODL.Stop()
	stub := &notifytest.Nova{}
	stub.MirrorHypervisors(func(ctx context.Context) ([]string, error) {
		return devstack.RootProviders(ctx, os.Getenv(databaseVariable))
	})
	nova, err := devstack.Serve(0, stub)
	if err != nil {
		return err
	}
	defer nova.Stop()
	reads, err := serveReadBaseline(ctx)
	if err != nil {
		return err
	}
	defer reads.Stop()
	traces, err := devstack.Serve(0, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	if err != nil {
		return err
	}
	defer traces.Stop()
	if err := json.NewEncoder(stdout).Encode(stubs{
		ODL:          odl.URL,
		Nova:         nova.URL,
		ReadBaseline: reads.URL,
		SyncODL:      syncODL.URL,
		Traces:       traces.URL,
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// startStubs runs the bench program a second time as the stub process, and reads the URLs of the stubs from
// the output of the stub process.
func (s *Stack) startStubs(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, StubCommand)
	cmd.Env = append(os.Environ(), MainVariable+"=1", databaseVariable+"="+s.Postgres.URL)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	ended := s.runProcess(ctx, cmd)
	go func() { w.CloseWithError(fmt.Errorf("the stub process ended: %w", <-ended)) }()
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, &s.Stubs)
}

// serveReadBaseline answers HTTP requests for rows of the table bench_row by their ID.
func serveReadBaseline(ctx context.Context) (*devstack.Server, error) {
	rows, err := pgxpool.New(ctx, os.Getenv(databaseVariable))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, rows.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{id}", func(w http.ResponseWriter, r *http.Request) {
		var row struct {
			ID    string `json:"id"`
			Value string `json:"value"`
		}
		err := rows.QueryRow(r.Context(), `select id::text, value from bench_row where id = $1`, r.PathValue("id")).
			Scan(&row.ID, &row.Value)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(row)
	})
	return devstack.Serve(0, mux)
}

// CreateBenchTable creates the table that the baselines of reads and writes use.
func (s *Stack) CreateBenchTable(ctx context.Context) error {
	_, err := s.Rows.Exec(ctx, `
		create table if not exists bench_row (
			id    uuid primary key,
			value text not null)`)
	return err
}
