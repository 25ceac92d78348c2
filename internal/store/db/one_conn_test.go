package db_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// TestProbe_AcceptsTheParametersOfPools uses a URL with parameters that only a pool of connections knows.
func TestProbe_AcceptsTheParametersOfPools(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t) + "&pool_max_conns=3"
	if _, err := db.Probe(t.Context(), url); err != nil {
		t.Errorf("probe the database with pool_max_conns: got error %v, want none", err)
	}
	if _, err := db.Migrate(t.Context(), url); err != nil {
		t.Errorf("migrate the database with pool_max_conns: got error %v, want none", err)
	}
}

// A database can hang after it has accepted a connection. Without a limit, `starter migrate` would wait for
// ever.
func TestOneConn_EndsWhenTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]int{
		"after the authentication":     0,
		"after the check for a pooler": 1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := db.PendingMigrations(t.Context(),
				"postgres://u@"+hangingServer(t, answered)+"/berth?sslmode=disable&connect_timeout=1")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("read the migrations of a database that hangs: got error %v, want the end of the time", err)
			}
		})
	}
}

// hangingServer starts a PostgreSQL server that accepts connections, answers the given number of queries of
// each connection with its process ID, and then hangs. hangingServer returns the address.
func hangingServer(t *testing.T, queries int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go hangAfter(client, queries)
		}
	}()
	return l.Addr().String()
}

func hangAfter(client net.Conn, queries int) {
	defer func() { _ = client.Close() }()
	server := pgproto3.NewBackend(client, client)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.BackendKeyData{ProcessID: 7, SecretKey: []byte{0, 0, 0, 1}})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for server.Flush() == nil {
		if _, err := server.Receive(); err != nil {
			return
		}
		if queries--; queries >= 0 {
			server.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("pg_backend_pid")}}})
			server.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("7")}})
			server.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	}
}
