package server

import (
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/osapi"
)

const (
	// reservedConnections is how many connections a listener accepts beyond BERTH_MAX_CONNECTIONS from
	// clients with few connections. Without them, no health check would be answered while one client holds
	// all connections.
	reservedConnections = 64
	// fewConnections is how many connections a client may have that uses the reserved connections.
	fewConnections = 2
)

// connectionLimit bounds the open connections of one listener, in all and from one client. A connection over
// a limit is closed at once, before any of its bytes is read, so that it costs neither memory nor a
// goroutine.
type connectionLimit struct {
	total, perClient int // 0: no limit
	// clients without the limit for one client: reverse proxies send the requests of many clients
	exempt  []netip.Prefix
	refused *prometheus.CounterVec

	mu     sync.Mutex
	open   int
	client map[netip.Addr]int
}

// newConnectionMetric returns and registers the metric of refused connections.
func newConnectionMetric(registry prometheus.Registerer) *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_http_connections_refused_total",
		Help: "Connections that the HTTP listeners closed at once, by the limit that was reached: client (BERTH_MAX_CONNECTIONS_PER_ADDRESS) or total (BERTH_MAX_CONNECTIONS).",
	}, []string{"limit"})
	for _, limit := range []string{"client", "total"} {
		refused.WithLabelValues(limit)
	}
	registry.MustRegister(refused)
	return refused
}

// newAbortMetric returns and registers the metric of aborted requests.
func newAbortMetric(registry prometheus.Registerer) prometheus.Counter {
	aborted := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "berth_http2_requests_aborted_total",
		Help: "Requests that the HTTP listeners aborted because the running requests of HTTP/2 of the listener or of one client address need too much memory.",
	})
	registry.MustRegister(aborted)
	return aborted
}

// peerOf returns the IP address of a connection's peer, or the zero address if the connection has no IP
// address.
func peerOf(address net.Addr) netip.Addr {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// acquire counts a new connection under the address of its client; the exemption depends on the address of
// the peer itself, because the network of a proxy can be smaller than that of a client. acquire returns
// the function that ends the count, or nil if the connection is over a limit.
func (l *connectionLimit) acquire(address net.Addr) (release func()) {
	peer := peerOf(address)
	client := osapi.ClientOf(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	has := l.client[client]
	switch {
	case l.perClient > 0 && has >= l.perClient && !osapi.Within(l.exempt, peer):
		l.refused.WithLabelValues("client").Inc()
		return nil
	case l.total > 0 && l.open >= l.total && (has >= fewConnections || l.open >= l.total+reservedConnections):
		l.refused.WithLabelValues("total").Inc()
		return nil
	}
	l.open++
	l.client[client]++
	return sync.OnceFunc(func() { l.release(client) })
}

func (l *connectionLimit) release(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.client[client]--; l.client[client] == 0 {
		delete(l.client, client)
	}
}

// limitedListener accepts only connections that its limit allows.
type limitedListener struct {
	net.Listener
	limit *connectionLimit
}

// Accept returns the next connection that the limit allows.
func (l limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		release := l.limit.acquire(conn.RemoteAddr())
		if release == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // no state of the refused connection stays behind in the kernel
			}
			_ = conn.Close()
			continue
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			return limitedConn{tcp, release}, nil
		}
		release()
		return conn, nil
	}
}

// limitedConn is a TCP connection that a limit counts until Close. limitedConn embeds *net.TCPConn, because
// net/http uses the method CloseWrite of a connection.
type limitedConn struct {
	*net.TCPConn
	release func()
}

// Close closes the connection.
func (c limitedConn) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}
