package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/devstack"
)

// databaseVariable tells the stand-ins where berth's database is.
const databaseVariable = "BERTH_BENCH_DATABASE_URL"

// known is how many rows there are to read.
const known = 1000

// openSelects measures the peer of everything that is a read: one row by its primary key, served by net/http and
// the driver alone, in a process of its own as berth is.
func openSelects(ctx context.Context, s *stack) (*subject, error) {
	ids := make([]uuid.UUID, known)
	for i := range ids {
		ids[i] = uuid.New()
	}
	_, err := s.rows.Exec(ctx, `
		create table if not exists bench_row (
			id    uuid primary key,
			value text not null)`)
	if err == nil {
		_, err = s.rows.Exec(ctx, `insert into bench_row (id, value) select id, 'bench' from unnest($1::uuid[]) as id`, ids)
	}
	if err != nil {
		return nil, err
	}
	return readsOf(s, s.standIns.Peer, func(n int64) string { return "/" + ids[n%known].String() }), nil
}

// openReads measures what a compute service asks before it changes a server: what the consumer holds.
func openReads(ctx context.Context, s *stack) (*subject, error) {
	providers, err := s.api.providers(ctx, 16)
	if err != nil {
		return nil, err
	}
	wires := newWires(s.api.base, 1)
	defer wires.close()
	if err := wires.open(ctx); err != nil {
		return nil, err
	}
	ids := make([]string, known)
	for i := range ids {
		ids[i] = uuid.NewString()
		if err := wires.send(0, http.MethodPut, "/placement/allocations/"+ids[i], allocation(providers[i%len(providers)])); err != nil {
			return nil, err
		}
	}
	return readsOf(s, s.api.base, func(n int64) string { return "/placement/allocations/" + ids[n%known] }), nil
}

// readsOf ask a server for one path after another.
func readsOf(s *stack, base string, path func(n int64) string) *subject {
	wires := newWires(base, s.clients)
	var next atomic.Int64
	return &subject{before: wires.open, op: func(_ context.Context, client int) (int, error) {
		return 1, wires.send(client, http.MethodGet, path(next.Add(1)), "")
	}, close: wires.end}
}

// servePeer serves the rows of openSelects from the database that the environment names.
func servePeer(ctx context.Context) (*devstack.Server, error) {
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
		err := rows.QueryRow(r.Context(), `select id::text, value from bench_row where id = $1`, r.PathValue("id")).Scan(&row.ID, &row.Value)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(row)
	})
	return devstack.Serve(0, mux)
}
