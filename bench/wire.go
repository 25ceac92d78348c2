package main

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

// wires are connections to an HTTP server, one for each client, that do no more than HTTP asks for. What is measured
// is the server: a client of the standard library would take as much of the machine that they share.
type wires struct {
	host string
	all  []*wire
}

type wire struct {
	net.Conn
	answers *bufio.Reader
	request []byte
}

// wirePatience is how long one request may take.
const wirePatience = 30 * time.Second

// newWires are for n clients of the server at that URL.
func newWires(base string, n int) *wires {
	return &wires{host: strings.TrimPrefix(base, "http://"), all: make([]*wire, n)}
}

// open connects, each round anew: a server hangs up on who is silent for long.
func (w *wires) open(ctx context.Context) error {
	w.close()
	var d net.Dialer
	for i := range w.all {
		c, err := d.DialContext(ctx, "tcp", w.host)
		if err != nil {
			return err
		}
		w.all[i] = &wire{Conn: c, answers: bufio.NewReader(c)}
	}
	return nil
}

func (w *wires) close() {
	for i, c := range w.all {
		if c != nil {
			_ = c.Close()
		}
		w.all[i] = nil
	}
}

// end is the end of a figure that has nothing to add.
func (w *wires) end(context.Context) ([]detail, error) {
	w.close()
	return nil, nil
}

// send sends the request of a client and waits for its answer, which must be a success.
func (w *wires) send(client int, method, path, body string) error {
	c := w.all[client]
	if err := c.SetDeadline(time.Now().Add(wirePatience)); err != nil {
		return err
	}
	c.request = fmt.Appendf(c.request[:0], "%s %s HTTP/1.1\r\nHost: %s\r\nX-Auth-Token: admin\r\nOpenStack-API-Version: placement latest\r\n", method, path, w.host)
	if body != "" {
		c.request = fmt.Appendf(c.request, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	c.request = append(append(c.request, "\r\n"...), body...)
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, said)
	}
	return err
}
