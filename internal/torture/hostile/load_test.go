package hostile

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/internal/server"
	"berth/internal/store/storetest"
)

// cpuTime returns the CPU time that the test process has used so far.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serveWithoutTimeouts starts an HTTP server without timeouts and makes the client send its further requests
// to this server, so that a slow machine can finish each answer.
func (h *hostileClient) serveWithoutTimeouts() {
	h.t.Helper()
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	s := server.NewHTTPServer(h.app.Handler())
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout = 0, 0, 0
	go func() { _ = s.Serve(listener) }()
	h.t.Cleanup(func() { _ = s.Close() })
	h.address, h.http.Timeout = listener.Addr().String(), 10*time.Minute
}

// measure runs f. measure returns the CPU time that the test process used while f ran, the maximum size of
// the heap in bytes, and the maximum number of connections to the database.
func (h *hostileClient) measure(database string, f func()) (cpu time.Duration, heap uint64, connections int) {
	h.t.Helper()
	done, ended := make(chan struct{}), make(chan struct{})
	conn := storetest.Connect(h.t, database)
	runtime.GC()
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapInuse)
			var n int
			row := conn.QueryRow(h.t.Context(), `select count(*) from pg_stat_activity
				where datname = current_database() and application_name = 'berth'`)
			if row.Scan(&n) == nil {
				connections = max(connections, n)
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	begin := cpuTime(h.t)
	f()
	cpu = cpuTime(h.t) - begin
	close(done)
	<-ended
	return cpu, heap, connections
}

func TestHostileLoad_MemoryAndConnectionsBounded(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in production, whatever GOGC is
	h := newHostileClient(t)
	h.serveWithoutTimeouts()
	storetest.Exec(t, h.database, `
		insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type)
		select gen_random_uuid(), 'demo', 'n' || i, '', true, false, false, 1450, true, 'local'
		from generate_series(1, 10000) i`)
	storetest.Exec(t, h.database, `
		insert into provider (id, uuid, name, root_id) overriding system value
		select 100000 + i, gen_random_uuid(), 'p' || i, 100000 + i from generate_series(1, 10000) i`)
	storetest.Exec(t, h.database, `
		with made as (
			insert into lease (id, name, user_id, project_id, status, start_at, end_at)
			select gen_random_uuid(), 'l' || i, 'u', 'demo', 'PENDING', now(), now() from generate_series(1, 10000) i
			returning id)
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), id, kind, now(), 'UNDONE' from made, unnest(array['start_lease', 'end_lease']) kind`)
	storetest.Exec(t, h.database, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
		select 'network', i::text, 'create', '{}', '{}', 'demo', 'x' from generate_series(1, 10000) i`)
	const report = `{"port":"{port}","entity":"DHCP","host":"elsewhere"}`
	reports := `{"reports":[` + strings.Repeat(report+`,`, 999) + report + `]}`
	other := `{"reports":[`
	for i := range 1000 {
		other += fmt.Sprintf(
			`{"port":"00000000-0000-0000-0000-%012d","entity":"DHCP","host":"elsewhere"},`,
			i,
		)
	}
	// The CPU time limit of each case is a multiple of the CPU time that a list of 10,000 networks takes on
	// the same machine.
	unit, _, _ := h.measure(h.database,
		func() { h.must(attack{method: "GET", path: "/networking/v2.0/networks"}) })
	maxCPU := 50 * max(unit, 100*time.Millisecond)
	for name, c := range map[string]struct {
		a      attack
		status int
	}{
		"networks":      {attack{method: "GET", path: "/networking/v2.0/networks"}, 200},
		"fields":        {attack{method: "GET", path: "/networking/v2.0/networks?" + strings.Repeat("fields=x&", 1000)}, 200},
		"filters":       {attack{method: "GET", path: "/networking/v2.0/networks?" + strings.Repeat("name=x&", 1000)}, 200},
		"substrings":    {attack{method: "GET", path: "/networking/v2.0/ports?" + strings.Repeat("fixed_ips=ip_address_substr%3D1&", 1000)}, 200},
		"sort keys":     {attack{method: "GET", path: "/networking/v2.0/networks?marker={network}&" + strings.Repeat("sort_key=name&sort_dir=asc&", 1000)}, 200},
		"providers":     {attack{method: "GET", path: "/placement/resource_providers"}, 200},
		"traits":        {attack{method: "GET", path: "/placement/traits?name=in:" + strings.Repeat("A,", 999)}, 200},
		"leases":        {attack{method: "GET", path: "/reservation/v1/leases"}, 200},
		"entries":       {attack{method: "GET", path: "/journal/v1/entries?limit=999999"}, 200},
		"reports":       {attack{method: "POST", path: "/agent/v1/reports", body: reports}, 200},
		"lost reports":  {attack{method: "POST", path: "/agent/v1/reports", body: other[:len(other)-1] + "]}"}, 200},
		"1001 reports":  {attack{method: "POST", path: "/agent/v1/reports", body: other + `{"port":"x","entity":"y","host":"z"}]}`}, 400},
		"endless query": {attack{method: "GET", path: "/networking/v2.0/networks?name=" + strings.Repeat("x", 100_000)}, 431},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.path, c.a.body = h.fill(c.a.path), h.fill(c.a.body)
			var status, size int
			cpu, heap, _ := h.measure(h.database, func() {
				s, body, _, err := h.send(t.Context(), c.a)
				if err != nil {
					t.Error(err)
				}
				status, size = s, len(body)
			})
			t.Logf(
				"got status %d and a body of %d kB, with %s of CPU time and a heap of at most %d MiB",
				status, size>>10, cpu, heap>>20,
			)
			if status != c.status || cpu > maxCPU || heap > 400<<20 {
				t.Errorf(
					"send a costly request: got status %d, %s of CPU time and a heap of %d MiB; want status %d, at most %s of CPU time and at most 400 MiB",
					status, cpu, heap>>20, c.status, maxCPU,
				)
			}
		})
	}

	var wait sync.WaitGroup
	var wrong sync.Map
	cpu, heap, connections := h.measure(h.database, func() {
		for i := range 12 {
			wait.Go(func() {
				body := []string{"[" + strings.Repeat("{},", 340_000) + "{}]", `{"port":{"name":"` + strings.Repeat("x", 1_000_000) + `"}}`, "[" + strings.Repeat("1,", 500_000) + "1]"}[i%3]
				path := []string{"/networking/v2.0/ports", "/placement/resource_providers", "/reservation/v1/leases", "/agent/v1/reports"}[i%4]
				status, _, _, err := h.send(t.Context(), attack{method: "POST", path: path, body: body})
				if status != 400 || err != nil {
					wrong.Store(fmt.Sprint(path, " ", status, " ", err), true)
				}
			})
		}
		wait.Wait()
	})
	t.Logf(
		"send 12 requests with bodies of 1 MiB: berth used %s of CPU time, at most %d MiB of heap, and at most %d database connections",
		cpu, heap>>20, connections,
	)
	wrong.Range(func(k, _ any) bool { t.Error(k); return true })
	if heap > 512<<20 {
		t.Errorf("send 12 requests with bodies of 1 MiB: got a heap of %d MiB, want at most 512 MiB",
			heap>>20)
	}

	_, _, connections = h.measure(h.database, func() {
		for range 200 {
			wait.Go(func() {
				if status, _, _, err := h.send(t.Context(), attack{method: "GET", path: "/placement/resource_providers?name=cmp-1"}); status != 200 ||
					err != nil {
					t.Errorf(
						"send 200 concurrent requests: one got status %d, error %v; want 200 for each",
						status,
						err,
					)
				}
			})
		}
		wait.Wait()
	})
	if connections > max(8, runtime.NumCPU())+4 {
		t.Errorf(
			"send 200 concurrent requests: they used %d database connections, want at most the 8 of the pool, the 2 reserved ones and two more",
			connections,
		)
	}
}

func TestHostileLoad_SlowConnectionsClosed(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	httpServer := server.NewHTTPServer(h.app.Handler())
	if httpServer.ReadHeaderTimeout == 0 || httpServer.ReadTimeout == 0 || httpServer.WriteTimeout == 0 ||
		httpServer.IdleTimeout == 0 ||
		httpServer.MaxHeaderBytes == 0 {
		t.Errorf("NewHTTPServer: a timeout or the header size limit is zero, want all set: %+v", httpServer)
	}
	// shorter timeouts than in production, so that the test is quick
	httpServer.ReadHeaderTimeout, httpServer.ReadTimeout, httpServer.IdleTimeout = 300*time.Millisecond, time.Second, time.Second
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = httpServer.Serve(listener) }()
	t.Cleanup(func() { _ = httpServer.Close() })
	const head = "POST /networking/v2.0/networks HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin\r\nContent-Type: application/json\r\n"
	for name, text := range map[string]string{
		"incomplete header":          "GET /networking/v2.0/networks HTTP/1.1\r\nHost: localhost\r\nX-",
		"missing body":               head + "Content-Length: 100\r\n\r\n{",
		"incomplete chunk":           head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
		"no byte":                    "",
		"chunk without a valid size": head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"Content-Length and chunks":  head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two Content-Lengths":        head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
		"negative Content-Length":    head + "Content-Length: -1\r\n\r\n",
		"endless chunks":             head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat(" ", 0x1000)+"\r\n", 600),
		"endless chunk":              head + "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" + strings.Repeat(" ", 3<<20),
		"huge header":                "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"thousands of headers":       "GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 100_000) + "\r\n",
		"not HTTP":                   "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			go func() { _, _ = conn.Write([]byte(text)) }()
			_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				body, _ := io.ReadAll(r.Body)
				_ = r.Body.Close()
				if r.StatusCode < 400 || r.StatusCode >= 500 {
					t.Errorf("send a slow or oversized request: got status %s, want 4xx", r.Status)
				}
				if err := checkErrorBody("/networking", r.StatusCode, r.Header, body); err != nil {
					t.Errorf(
						"send a slow or oversized request: got status %s, body %q; want an error in the format of the Networking API: %v",
						r.Status, body, err,
					)
				}
				_, err = bufio.NewReader(conn).ReadByte()
			}
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Error(
					"send a slow request: the server did not close the connection, want it to close the connection after the server's timeout",
				)
			}
		})
	}
}
