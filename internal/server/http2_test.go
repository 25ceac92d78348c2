package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"berth/internal/config"
)

// startTLS serves the handler over TLS with limits for connections, as a process does.
func startTLS(t *testing.T, limits config.Connections, h http.Handler) (a *App, address string) {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	files := &certificateFiles{
		loaded: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: certified.TLS.Certificates,
			NextProtos:   []string{"h2", "http/1.1"},
		},
	}
	files.seen = files.stat()
	a = &App{
		cfg:             config.Config{Connections: limits},
		refusedConns:    newConnectionMetric(prometheus.NewRegistry()),
		abortedRequests: newAbortMetric(prometheus.NewRegistry()),
	}
	e, err := a.listenOn("BERTH_LISTEN", "127.0.0.1:0", files, h)
	if err != nil {
		t.Fatal(err)
	}
	// the clients of the tests answer no pings and read no answers
	e.server.HTTP2.SendPingTimeout, e.server.WriteTimeout = time.Hour, time.Hour
	ended := make(chan error, 1)
	go func() { ended <- e.serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cancel() // close running streams at once
		e.stop(ctx)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a, e.address()
}

// dialFrom opens a TLS connection from a local address.
func dialFrom(ctx context.Context, from, to string) (net.Conn, error) {
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{
			LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0)),
		},
		Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}},
	}
	return dialer.DialContext(ctx, "tcp", to)
}

// http2Client is a client of HTTP/2 that can send any frames.
type http2Client struct {
	*http2.Framer
	conn    net.Conn
	headers bytes.Buffer
	encoder *hpack.Encoder
	stream  uint32
}

// newHTTP2Client opens a connection from a local address with the given settings.
func newHTTP2Client(ctx context.Context, from, to string, settings ...http2.Setting) (*http2Client, error) {
	conn, err := dialFrom(ctx, from, to)
	if err != nil {
		return nil, err
	}
	c := &http2Client{Framer: http2.NewFramer(conn, conn), conn: conn, stream: 1}
	c.encoder = hpack.NewEncoder(&c.headers)
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = c.WriteSettings(settings...)
	}
	return c, err
}

// request sends a request with the given headers on a new stream.
func (c *http2Client) request(headers ...hpack.HeaderField) error {
	c.headers.Reset()
	pseudo := []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "berth"}, {Name: ":path", Value: "/"}}
	for _, f := range append(pseudo, headers...) {
		if err := c.encoder.WriteField(f); err != nil {
			return err
		}
	}
	err := c.WriteHeaders(http2.HeadersFrameParam{
		StreamID:      c.stream,
		BlockFragment: c.headers.Bytes(),
		EndStream:     true,
		EndHeaders:    true,
	})
	c.stream += 2
	return err
}

// refusedStreams waits until the server has read everything that the client has sent, and returns the number
// of refused streams.
func (c *http2Client) refusedStreams() (refused int, err error) {
	if err := c.WritePing(false, [8]byte{1}); err != nil {
		return 0, err
	}
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return refused, err
		}
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			refused++
		case *http2.PingFrame:
			if f.IsAck() {
				return refused, nil
			}
		}
	}
}

func TestHTTP2_StreamsAndConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	const perAddress, streams, attempts, requests = 4, 10, 12, 50
	entered, running, most := make(chan struct{}, attempts*requests), atomic.Int64{}, atomic.Int64{}
	a, address := startTLS(
		t,
		config.Connections{PerAddress: perAddress, Streams: streams},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			entered <- struct{}{}
			_, _ = w.Write(make([]byte, 1<<20)) // waits for the window of the client
		}),
	)

	accepted, refused := 0, 0
	for range attempts {
		c, err := newHTTP2Client(t.Context(), "127.0.0.2", address,
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for range requests {
			if err == nil {
				err = c.request()
			}
		}
		if err != nil {
			continue // the server has closed the connection
		}
		defer func() { _ = c.conn.Close() }()
		if n, err := c.refusedStreams(); err == nil {
			accepted, refused = accepted+1, refused+n
		}
	}
	for range accepted * streams {
		<-entered
	}

	if accepted != perAddress || refused != perAddress*(requests-streams) ||
		most.Load() > perAddress*streams {
		t.Errorf(
			"%d connections with %d requests each and window 0: got %d connections, %d refused requests and %d running requests; want %d, %d and at most %d",
			attempts, requests, accepted, refused, most.Load(), perAddress,
			perAddress*(requests-streams), perAddress*streams,
		)
	}
	if n := testutil.ToFloat64(a.refusedConns.WithLabelValues("client")); n != attempts-perAddress {
		t.Errorf("berth_http_connections_refused_total: got %g, want %d", n, attempts-perAddress)
	}
	other, err := newHTTP2Client(t.Context(), "127.0.0.3", address)
	if err == nil {
		err = other.request()
	}
	if err != nil {
		t.Fatalf("request from another address: got error %v, want an answer", err)
	}
	defer func() { _ = other.conn.Close() }()
	<-entered
}

// A client repeats a large header with a byte for each repetition, and does not read the answers.
func TestHTTP2_HeadersOfUnreadAnswersUseBoundedMemory(t *testing.T) {
	t.Parallel()
	const connections, streams, running = 10, 100, 756 // 64 MiB / 88,682 bytes
	entered := make(chan struct{}, connections*streams+2)
	a, address := startTLS(t, config.Connections{PerAddress: connections, Streams: streams},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			entered <- struct{}{}
			_, _ = w.Write([]byte("answer")) // waits for the window of the client
		}))
	cookies := slices.Repeat([]hpack.HeaderField{{Name: "cookie", Value: strings.Repeat("c", 4000)}}, 16)
	open := func(from string) *http2Client {
		c, err := newHTTP2Client(t.Context(), from, address,
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.conn.Close() })
		return c
	}
	var clients []*http2Client
	for range connections {
		c := open("127.0.0.2")
		clients = append(clients, c)
		for range streams {
			if err := c.request(cookies...); err != nil {
				t.Fatal(err)
			}
		}
	}
	aborted := func() int { return int(testutil.ToFloat64(a.abortedRequests)) }
	for len(entered)+aborted() < connections*streams {
		time.Sleep(time.Millisecond)
	}

	if n := len(entered); n != running {
		t.Errorf("running requests of one address: got %d, want %d", n, running)
	}
	if err := open("127.0.0.3").request(cookies...); err != nil {
		t.Fatal(err)
	}
	for len(entered) <= running {
		time.Sleep(time.Millisecond)
	}
	for _, c := range clients {
		_ = c.conn.Close()
	}
	for again := open("127.0.0.2"); len(entered) <= running+1; time.Sleep(10 * time.Millisecond) {
		if err := again.request(); err != nil { // at most 100 of them fit
			t.Fatalf("request after the end of all others of the address: got error %v, want an answer", err)
		}
	}
}

func TestConnectionLimit_KeepsConnectionsForHealthChecks(t *testing.T) {
	t.Parallel()
	from := func(i int) net.Addr {
		return net.TCPAddrFromAddrPort(
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 4000),
		)
	}
	l := &connectionLimit{
		total:     100,
		perClient: 60,
		client:    map[netip.Addr]int{},
		refused:   newConnectionMetric(prometheus.NewRegistry()),
	}
	open := func(i int) bool { return l.acquire(from(i)) != nil }
	taken := map[int]int{}
	for i := range 2 {
		for range 100 {
			if open(i) {
				taken[i]++
			}
		}
	}
	if taken[0] != 60 || taken[1] != 40 {
		t.Errorf(
			"100 connections of each of two clients: got %d and %d, want 60 (of one client) and 40 (the rest of all)",
			taken[0],
			taken[1],
		)
	}
	first, second, third := open(2), open(2), open(2)
	if !first || !second || third {
		t.Error(
			"a client without connections at the limit: want its first two connections accepted and the third refused",
		)
	}
	strangers := 0
	for i := range 200 {
		if open(1000 + i) {
			strangers++
		}
	}
	if strangers != reservedConnections-2 || l.open != 100+reservedConnections {
		t.Errorf("connections beyond the limit: got %d and %d open, want %d and %d",
			strangers, l.open, reservedConnections-2, 100+reservedConnections)
	}
}

func TestConnectionLimit_TrustedProxiesAreExempt(t *testing.T) {
	t.Parallel()
	l := &connectionLimit{
		perClient: 1,
		client:    map[netip.Addr]int{},
		refused:   newConnectionMetric(prometheus.NewRegistry()),
		exempt: []netip.Prefix{
			netip.MustParsePrefix("192.0.9.0/24"),
			netip.MustParsePrefix("2001:db8::5/128"),
			netip.MustParsePrefix("2001:db8:1::/120"),
		},
	}
	for _, c := range []struct {
		peer   string
		exempt bool
	}{
		{"192.0.9.1", true},
		{"::ffff:192.0.9.1", true},
		{"2001:db8::5", true},
		{"2001:db8::6", false},
		{"2001:db8:1::7", true},
		{"2001:db8:1::7%eth0", true},
		{"2001:db8:1:0:1::7", false},
		{"192.0.8.1", false},
	} {
		address := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.peer), 4000))
		l.acquire(address)
		if again := l.acquire(address) != nil; again != c.exempt {
			t.Errorf("another connection of %s at the limit of one client: got it accepted %t, want %t",
				c.peer, again, c.exempt)
		}
	}
}

func TestConnectionLimit_ForgetsClosedConnections(t *testing.T) {
	t.Parallel()
	l := &connectionLimit{
		total:     1,
		perClient: 1,
		client:    map[netip.Addr]int{},
		refused:   newConnectionMetric(prometheus.NewRegistry()),
	}
	for i := range 3 {
		address := &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("2001:db8::%d", i+1)), Port: 1}
		release := l.acquire(address)
		if release == nil || l.acquire(address) != nil {
			t.Fatalf("connection %d: want it accepted, and a second one from its /64 refused", i)
		}
		release()
		release() // Close may be called twice
	}
	if l.open != 0 || len(l.client) != 0 {
		t.Errorf("after the end of all connections: got %d open and %d clients, want none",
			l.open, len(l.client))
	}
}

// TestHTTP2_TableSizeChangesWhileAnswersAreWritten repeats the requests with which Go 1.26.8 died of
// concurrent writes to a map: a client changes SETTINGS_HEADER_TABLE_SIZE while the server encodes headers of
// answers.
func TestHTTP2_TableSizeChangesWhileAnswersAreWritten(t *testing.T) {
	t.Parallel()
	const requests = 2000
	var value atomic.Int64
	_, address := startTLS(
		t,
		config.Connections{Streams: 250},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20 {
				w.Header().Set(fmt.Sprintf("X-Header-%d", i), fmt.Sprint(value.Add(1)))
				// new entries of the table
			}
		}),
	)
	c, err := newHTTP2Client(t.Context(), "127.0.0.1", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.conn.Close() }()
	room, sent := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		for i := range requests {
			room <- struct{}{}
			size := http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(i % 2 * 4096)}
			if err := errors.Join(c.request(), c.WriteSettings(size)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for answered := 0; answered < requests; {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("after %d answers: got error %v, want %d answers", answered, err, requests)
		}
		headers, isHeaders := f.(*http2.HeadersFrame)
		data, isData := f.(*http2.DataFrame)
		if isHeaders && headers.StreamEnded() || isData && data.StreamEnded() {
			answered++
			<-room
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
