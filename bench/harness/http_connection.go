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
	Token        string        // X-Auth-Token
	Microversion string        // of the Placement API
	Timeout      time.Duration // maximum duration of one request
	host         string
	all          []*httpConnection
}

type httpConnection struct {
	net.Conn
	reader  *bufio.Reader
	request []byte // buffer
}

// NewHTTPConnections returns n connections, still unopened, to the server at the URL `base`.
func NewHTTPConnections(base string, n int) *HTTPConnections {
	return &HTTPConnections{
		Token:        "admin",
		Microversion: "latest",
		Timeout:      30 * time.Second,
		host:         strings.TrimPrefix(base, "http://"),
		all:          make([]*httpConnection, n),
	}
}

// Count returns the number of connections.
func (h *HTTPConnections) Count() int { return len(h.all) }

// Open replaces all connections by new ones, because a server closes idle connections.
func (h *HTTPConnections) Open(ctx context.Context) error {
	h.Close()
	for i := range h.all {
		if err := h.open(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// open opens the connection of a client if it is not open.
func (h *HTTPConnections) open(ctx context.Context, client int) error {
	if h.all[client] != nil {
		return nil
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", h.host)
	if err == nil {
		h.all[client] = &httpConnection{Conn: c, reader: bufio.NewReader(c)}
	}
	return err
}

// Close closes all connections.
func (h *HTTPConnections) Close() {
	for client := range h.all {
		h.close(client)
	}
}

// close closes the connection of a client.
func (h *HTTPConnections) close(client int) {
	if c := h.all[client]; c != nil {
		_ = c.Close()
		h.all[client] = nil
	}
}

// Send sends a request on the connection of the client with the number `client` and reads the answer. Send
// returns an error if the status of the answer is not 2xx.
func (h *HTTPConnections) Send(client int, method, path, body string) error {
	status, answer, err := h.Exchange(client, method, path, body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s: %s", method, path, status, http.StatusText(status), answer)
	}
	return err
}

// Exchange sends a request on the connection of the client with the number `client`, which it opens if it is
// not open, and returns the status and the body of the answer. Exchange closes the connection after an error,
// and if the server says so.
func (h *HTTPConnections) Exchange(client int, method, path, body string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), h.Timeout)
	defer cancel()
	if err := h.open(ctx, client); err != nil {
		return 0, nil, err
	}
	r, answer, err := h.all[client].exchange(h, method, path, body)
	if err != nil || r.Close {
		h.close(client)
	}
	if err != nil {
		return 0, nil, err
	}
	return r.StatusCode, answer, nil
}

func (c *httpConnection) exchange(h *HTTPConnections, method, path, body string) (*http.Response, []byte, error) {
	if err := c.SetDeadline(time.Now().Add(h.Timeout)); err != nil {
		return nil, nil, err
	}
	c.request = fmt.Appendf(
		c.request[:0],
		"%s %s HTTP/1.1\r\nHost: %s\r\nX-Auth-Token: %s\r\nOpenStack-API-Version: placement %s\r\n",
		method, path, h.host, h.Token, h.Microversion,
	)
	if body != "" {
		c.request = fmt.Appendf(c.request, "Content-Type: application/json\r\nContent-Length: %d\r\n",
			len(body))
	}
	c.request = append(append(c.request, "\r\n"...), body...)
	if _, err := c.Write(c.request); err != nil {
		return nil, nil, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	answerBody, err := io.ReadAll(answer.Body)
	return answer, answerBody, err
}
