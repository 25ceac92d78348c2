package odl_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"berth/internal/odl"
)

// memoryListener accepts connections that do not leave the process, so that the clock of a synctest bubble
// applies to both sides.
type memoryListener struct {
	connections chan net.Conn
	closed      chan struct{}
	closeOnce   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *memoryListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.connections <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// newMemoryClient starts a server with the given handler within the synctest bubble of the caller, and
// returns a client of the server. The URL in the configuration contains only a path.
func newMemoryClient(t *testing.T, config odl.Config, h http.Handler) *odl.Client {
	t.Helper()
	l := &memoryListener{connections: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	config.URL = "http://controller" + config.URL
	config.Wrap = func(trips http.RoundTripper) http.RoundTripper {
		transport := trips.(*http.Transport)
		transport.DialContext, transport.Proxy = l.dial, nil
		t.Cleanup(func() {
			_ = server.Close()
			transport.CloseIdleConnections()
		})
		return transport
	}
	return newClient(t, config)
}
