package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"berth/bench/harness"
)

// peer is a client of one of the two servers.
type peer struct {
	name        string
	prefix      string // path of the Placement API
	clients     int
	connections *harness.HTTPConnections // one for each concurrent client
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
	p := &peer{
		name:        name,
		prefix:      prefix,
		clients:     clients,
		connections: harness.NewHTTPConnections(address, clients),
	}
	p.connections.Microversion, p.connections.Timeout = microversion, requestTimeout
	return p
}

// errConflict means that another writer was faster; the client may repeat the request.
var errConflict = errors.New("concurrent update")

// send sends a request on the connection of a client and returns the body of the answer. If the status of
// the answer is not 2xx, send returns an error, which wraps errConflict for the status 409.
func (p *peer) send(client int, r request) ([]byte, error) {
	status, body, err := p.connections.Exchange(client, r.method, p.prefix+r.path, r.body)
	switch {
	case err != nil:
	case status == http.StatusConflict:
		err = fmt.Errorf("%w: %s", errConflict, body)
	case status/100 != 2:
		err = fmt.Errorf("%d %s: %s", status, http.StatusText(status), body)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", p.name, r, err)
	}
	return body, nil
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
