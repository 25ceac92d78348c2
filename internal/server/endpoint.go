package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"berth/internal/api/osapi"
)

// endpoint is an address on which the process answers HTTP requests, with TLS or without.
type endpoint struct {
	listener net.Listener
	server   *http.Server
	tls      bool // not server.TLSConfig, because http.Server sets this field also without TLS
}

// listenOn returns an endpoint on the address. The endpoint accepts connections, but does not answer requests
// before serve is called. If `certificates` is not nil, the endpoint uses TLS. The parameter `setting` is the
// name of the setting that contains the address, for errors.
func (a *App) listenOn(
	setting, address string,
	certificates *certificateFiles,
	h http.Handler,
) (*endpoint, error) {
	limits := a.cfg.Connections
	l, err := listen(setting, address, &connectionLimit{
		total:     limits.Total,
		perClient: limits.PerAddress,
		exempt:    a.cfg.TrustedProxies,
		refused:   a.refusedConns,
		client:    map[netip.Addr]int{},
	})
	if err != nil {
		return nil, err
	}
	h = osapi.LimitStreams(setting, a.cfg.TrustedProxies, a.abortedRequests.Inc, h)
	e := &endpoint{listener: l, server: NewHTTPServer(h)}
	e.server.HTTP2.MaxConcurrentStreams = limits.Streams
	if certificates != nil {
		e.tls = true
		e.server.TLSConfig = certificates.serverConfig()
	}
	return e, nil
}

func (e *endpoint) address() string { return e.listener.Addr().String() }

// url returns the URL of the endpoint without a path.
func (e *endpoint) url() string {
	if e.tls {
		return "https://" + e.address()
	}
	return "http://" + e.address()
}

// serve answers requests until stop is called. serve returns nil after stop, and otherwise the reason why it
// cannot continue.
func (e *endpoint) serve() error {
	run := e.server.Serve
	if e.tls {
		run = func(l net.Listener) error { return e.server.ServeTLS(l, "", "") }
	}
	if err := run(e.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", e.address(), err)
	}
	return nil
}

// stop accepts no further connection, and waits for the answers to running requests. If ctx ends before, stop
// closes their connections.
func (e *endpoint) stop(ctx context.Context) {
	if err := e.server.Shutdown(ctx); err != nil {
		_ = e.server.Close()
	}
}
