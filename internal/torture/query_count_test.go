package torture

import (
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// queryCounter is a proxy in front of PostgreSQL that counts the SQL statements that clients execute, and the round trips.
type queryCounter struct {
	database string // URL of the database behind the proxy
	count    atomic.Int64
	trips    atomic.Int64
}

// newQueryCounter starts a proxy in front of the server of the database with the given URL.
func newQueryCounter(t *testing.T, database string) *queryCounter {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	server := u.Host
	u.Host = l.Addr().String()
	q := &queryCounter{database: u.String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go q.serve(client, server)
		}
	}()
	return q
}

// serve connects a client to the server until one of them closes the connection.
func (q *queryCounter) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	messages := pgproto3.NewBackend(client, io.Discard)
	for receive := messages.ReceiveStartupMessage; ; {
		m, err := receive()
		if err != nil {
			return
		}
		switch m.(type) {
		case *pgproto3.StartupMessage:
			receive = messages.Receive
		case *pgproto3.Query:
			q.count.Add(1)
			q.trips.Add(1)
		case *pgproto3.Execute:
			q.count.Add(1)
		case *pgproto3.Sync:
			q.trips.Add(1)
		}
		encoded, err := m.Encode(nil)
		if err != nil {
			return
		}
		if _, err := server.Write(encoded); err != nil {
			return
		}
	}
}
