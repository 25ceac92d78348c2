package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// peer is a client of one of the two servers.
type peer struct {
	name    string
	address string
	prefix  string // path of the Placement API
	clients []*connection
}

// connection is the keep-alive connection of one concurrent client. It does not use net/http's client, which
// would use as much CPU time as berth on the same machine.
type connection struct {
	net.Conn
	reader *bufio.Reader
	buffer []byte
}

// request is a request to the Placement API. Its path does not have the prefix of a server.
type request struct {
	method, path, body string
}

func (r request) String() string { return r.method + " " + r.path }

// microversion is the newest microversion of both servers.
const microversion = "1.39"

// requestTimeout is the maximum duration of one request.
const requestTimeout = 2 * time.Minute

func newPeer(name, address, prefix string, clients int) *peer {
	return &peer{
		name:    name,
		address: address,
		prefix:  prefix,
		clients: make([]*connection, clients),
	}
}

func (p *peer) close() {
	for i, c := range p.clients {
		if c != nil {
			_ = c.Close()
		}
		p.clients[i] = nil
	}
}

// connect returns the connection of a client, and opens it if it is not open.
func (p *peer) connect(client int) (*connection, error) {
	if c := p.clients[client]; c != nil {
		return c, nil
	}
	c, err := net.DialTimeout("tcp", p.address, requestTimeout)
	if err != nil {
		return nil, err
	}
	p.clients[client] = &connection{Conn: c, reader: bufio.NewReader(c)}
	return p.clients[client], nil
}

// disconnect closes the connection of a client; the next request opens a new one.
func (p *peer) disconnect(client int) {
	if c := p.clients[client]; c != nil {
		_ = c.Close()
		p.clients[client] = nil
	}
}

// errConflict means that another writer was faster; the client may repeat the request.
var errConflict = errors.New("concurrent update")

// send sends a request on the connection of a client and returns the body of the answer. If the status of
// the answer is not 2xx, send returns an error, which is errConflict for the status 409.
func (p *peer) send(client int, r request) ([]byte, error) {
	body, err := p.exchange(client, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", p.name, r, err)
	}
	return body, nil
}

func (p *peer) exchange(client int, r request) ([]byte, error) {
	c, err := p.connect(client)
	if err != nil {
		return nil, err
	}
	if err := c.write(p, r); err != nil {
		p.disconnect(client)
		return nil, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		p.disconnect(client)
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.Close {
		p.disconnect(client)
	}
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusConflict:
		return nil, fmt.Errorf("%w: %s", errConflict, body)
	case answer.StatusCode/100 != 2:
		return nil, fmt.Errorf("%s: %s", answer.Status, body)
	}
	return body, nil
}

func (c *connection) write(p *peer, r request) error {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	c.buffer = fmt.Appendf(
		c.buffer[:0],
		"%s %s%s HTTP/1.1\r\nHost: %s\r\nX-Auth-Token: admin\r\nAccept: application/json\r\n"+
			"OpenStack-API-Version: placement %s\r\n",
		r.method, p.prefix, r.path, p.address, microversion,
	)
	if r.body != "" {
		c.buffer = fmt.Appendf(c.buffer, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(r.body))
	}
	c.buffer = append(append(c.buffer, "\r\n"...), r.body...)
	_, err := c.Write(c.buffer)
	return err
}

// maxConflicts is the number of conflicts after which a client gives up a request.
const maxConflicts = 1000

// sendUntilDone repeats a request while its answer is a conflict, as Nova does, and returns the number of
// conflicts.
func (p *peer) sendUntilDone(ctx context.Context, client int, r request) (conflicts int, err error) {
	for conflicts = 0; ; conflicts++ {
		_, err := p.send(client, r)
		if !errors.Is(err, errConflict) || conflicts == maxConflicts || ctx.Err() != nil {
			return conflicts, err
		}
	}
}
