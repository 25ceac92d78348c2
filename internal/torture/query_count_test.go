package torture

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// Request codes of PostgreSQL's protocol that a client sends in place of a protocol version, before the real start of the session.
const sslRequest, gssRequest = 80877103, 80877104

// queryCounter is a proxy in front of PostgreSQL that counts the SQL statements that clients execute.
type queryCounter struct {
	database string // URL of the database behind the proxy
	count    atomic.Int64
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
	for started := false; ; {
		typ, body, err := readMessage(client, started)
		if err != nil {
			return
		}
		switch {
		case !started:
			code := binary.BigEndian.Uint32(body[4:])
			started = code != sslRequest && code != gssRequest
		case typ == 'Q' || typ == 'E': // a simple query, or the execution of a prepared statement
			q.count.Add(1)
		}
		if _, err := server.Write(body); err != nil {
			return
		}
	}
}

// readMessage reads a message of a client and returns its type and all of its bytes. Messages before the start of the session have no type.
func readMessage(client io.Reader, started bool) (typ byte, message []byte, err error) {
	header := make([]byte, 4, 5)
	if started {
		header = header[:5]
	}
	if _, err := io.ReadFull(client, header); err != nil {
		return 0, nil, err
	}
	size := len(header) - 4 + int(binary.BigEndian.Uint32(header[len(header)-4:]))
	message = append(make([]byte, 0, size), header...)[:size]
	_, err = io.ReadFull(client, message[len(header):])
	return header[0], message, err
}
