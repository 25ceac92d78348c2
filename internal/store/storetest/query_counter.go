package storetest

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// QueryCounter is a proxy in front of PostgreSQL that counts the SQL statements that clients execute, and the
// round trips with at least one such statement. How often the other statements and round trips occur depends
// on the speed of the machine, so QueryCounter ignores them: pgx prepares each statement once per connection
// and checks a connection that was idle for a second, and a goroutine of its own notifies the relays after a
// commit.
type QueryCounter struct {
	URL        string // of the database behind the proxy
	statements atomic.Int64
	trips      atomic.Int64
}

// Statements returns the number of statements so far.
func (q *QueryCounter) Statements() int64 { return q.statements.Load() }

// RoundTrips returns the number of round trips so far.
func (q *QueryCounter) RoundTrips() int64 { return q.trips.Load() }

// countedConn counts the statements of one connection.
type countedConn struct {
	*QueryCounter
	notify   string // name of the prepared statement that notifies the relays
	ignored  bool   // the portal that Execute runs notifies the relays
	executed int64  // statements since the last Sync
}

// countMessage counts the statements and round trips of a message that the client has sent.
func (c *countedConn) countMessage(m pgproto3.FrontendMessage) {
	switch m := m.(type) {
	case *pgproto3.Query:
		if m.String != pingSQL {
			c.statements.Add(1)
			c.trips.Add(1)
		}
	case *pgproto3.Parse:
		if strings.Contains(m.Query, "pg_notify") {
			c.notify = m.Name
		}
	case *pgproto3.Bind:
		c.ignored = c.notify != "" && m.PreparedStatement == c.notify
	case *pgproto3.Execute:
		if !c.ignored {
			c.executed++
		}
	case *pgproto3.Sync:
		if c.executed > 0 {
			c.statements.Add(c.executed)
			c.trips.Add(1)
		}
		c.executed = 0
	}
}

// pingSQL is the statement with which pgx checks a connection.
const pingSQL = "-- ping"

// NewQueryCounter starts a proxy in front of the server of the database with the given URL.
func NewQueryCounter(t testing.TB, database string) *QueryCounter {
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
	q := &QueryCounter{URL: u.String()}
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
func (q *QueryCounter) serve(client net.Conn, address string) {
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
	counted := countedConn{QueryCounter: q}
	messages := pgproto3.NewBackend(client, io.Discard)
	for receive := messages.ReceiveStartupMessage; ; {
		m, err := receive()
		if err != nil {
			return
		}
		if _, starts := m.(*pgproto3.StartupMessage); starts {
			receive = messages.Receive
		}
		counted.countMessage(m)
		encoded, err := m.Encode(nil)
		if err != nil {
			return
		}
		if _, err := server.Write(encoded); err != nil {
			return
		}
	}
}
