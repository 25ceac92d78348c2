package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// HTTPConnections holds keep-alive connections to an HTTP server, one for each concurrent client of a
// measurement. HTTPConnections does not use net/http's client, because that client would use as much CPU time
// as the measured server on the same machine.
type HTTPConnections struct {
	host string
	all  []*httpConnection
}

type httpConnection struct {
	net.Conn
	reader  *bufio.Reader
	request []byte // buffer
}

// requestTimeout is the maximum duration of one request.
const requestTimeout = 30 * time.Second

// NewHTTPConnections returns n connections, still unopened, to the server at the URL `base`.
func NewHTTPConnections(base string, n int) *HTTPConnections {
	return &HTTPConnections{host: strings.TrimPrefix(base, "http://"), all: make([]*httpConnection, n)}
}

// Open replaces all connections by new ones, because a server closes idle connections.
func (h *HTTPConnections) Open(ctx context.Context) error {
	h.Close()
	var d net.Dialer
	for i := range h.all {
		c, err := d.DialContext(ctx, "tcp", h.host)
		if err != nil {
			return err
		}
		h.all[i] = &httpConnection{Conn: c, reader: bufio.NewReader(c)}
	}
	return nil
}

// Close closes all connections.
func (h *HTTPConnections) Close() {
	for i, c := range h.all {
		if c != nil {
			_ = c.Close()
		}
		h.all[i] = nil
	}
}

// Send sends a request on the connection of the client with the number `client` and reads the answer. Send
// returns an error if the status of the answer is not 2xx.
func (h *HTTPConnections) Send(client int, method, path, body string) error {
	c := h.all[client]
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	c.request = fmt.Appendf(
		c.request[:0],
		"%s %s HTTP/1.1\r\nHost: %s\r\nX-Auth-Token: admin\r\nOpenStack-API-Version: placement latest\r\n",
		method, path, h.host,
	)
	if body != "" {
		c.request = fmt.Appendf(c.request, "Content-Type: application/json\r\nContent-Length: %d\r\n",
			len(body))
	}
	c.request = append(append(c.request, "\r\n"...), body...)
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	answerBody, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, answerBody)
	}
	return err
}
