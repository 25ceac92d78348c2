package odl_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/odl"
	"berth/internal/odl/odltest"
)

const (
	network = "11111111-1111-4111-8111-111111111111"
	create  = `{"network":{"id":"` + network + `","name":"blue","revision_number":1}}`
)

// newController returns a stub of OpenDaylight and a client of the stub.
func newController(t *testing.T) (*odltest.Controller, *odl.Client) {
	t.Helper()
	c := odltest.New()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, newClient(t, odl.Config{URL: server.URL + odltest.BasePath})
}

// newClient returns a client. If the configuration has no timeout, the client's timeout cannot be reached in
// a test.
func newClient(t *testing.T, config odl.Config) *odl.Client {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = time.Hour
	}
	client, err := odl.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func send(t *testing.T, c *odl.Client, method, path, body string) odl.Response {
	t.Helper()
	a, err := c.Send(t.Context(), odl.Request{
		Method:    method,
		Path:      path,
		Body:      []byte(body),
		MaxAnswer: odl.MaxObject,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSend_CreatesUpdatesAndDeletes(t *testing.T) {
	t.Parallel()
	c, client := newController(t)
	one := "/networks/" + network
	update := `{"network":{"name":"red","revision_number":3}}`
	old := `{"network":{"name":"green","revision_number":2}}`
	for _, step := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"GET", one, "", 404, "UUID does not exist"},
		{"PUT", one, update, 404, "UUID does not exist"},
		{"POST", "/networks", `{"net":{}}`, 400, "Invalid requests"},
		{"POST", "/networks", create, 201, `"blue"`},
		{"POST", "/networks", create, 409, `"blue"`},
		{"PUT", one, update, 200, `"red"`},
		{"PUT", one, old, 200, ""},
		{"GET", one, "", 200, `"red"`},
		{"GET", "/networks", "", 200, `{"networks":[{`},
		{"PUT", one, `{"networks":[]}`, 400, "singleton"},
		{"DELETE", one, "", 204, ""},
		{"DELETE", one, "", 404, ""},
		{"GET", "/volcanoes", "", 500, ""},
	} {
		a := send(t, client, step.method, step.path, step.body)
		if a.Status != step.status || !strings.Contains(string(a.Body), step.answer) || a.Failure != "" {
			t.Errorf(
				"%s %s: got status %d, body %s, failure detail %s; want status %d and a body with %q",
				step.method, step.path, a.Status, a.Body, a.Detail, step.status, step.answer,
			)
		}
	}
	want := odltest.Record{
		Type:            "network",
		ID:              network,
		Creates:         1,
		Updates:         1,
		Deletes:         1,
		HighestRevision: 3,
	}
	if d := cmp.Diff(want, c.Record("network", network)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"network " + network + " was written with revision 2 after revision 3"}, c.Violations()); d != "" {
		t.Error(d)
	}
}

func TestSend_FailureKindOfEachFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   odltest.Fault
		method  string
		want    odl.Response
		applied int
	}{
		"overload":                   {fault: odltest.Fault{Status: 503, Header: map[string]string{"Retry-After": "7"}}, want: odl.Response{Status: 503, RetryAfter: 7 * time.Second}},
		"limit":                      {fault: odltest.Fault{Status: 429, Header: map[string]string{"Retry-After": "nonsense"}}, want: odl.Response{Status: 429}},
		"refusal":                    {fault: odltest.Fault{Status: 400, Body: "no"}, want: odl.Response{Status: 400, Body: []byte("no")}},
		"redirect":                   {fault: odltest.Fault{Status: 302, Header: map[string]string{"Location": "/login"}}, want: odl.Response{Status: 302, Location: "/login"}},
		"gateway gave up, done":      {fault: odltest.Fault{Status: 504, Applied: true}, want: odl.Response{Status: 504}, applied: 1},
		"slow":                       {fault: odltest.Fault{DelayMS: 50}, want: odl.Response{Status: 201}, applied: 1},
		"too slow":                   {fault: odltest.Fault{DelayMS: 60_000}, want: odl.Response{Failure: odl.FailureTimeout}},
		"silent":                     {fault: odltest.Fault{Break: odltest.BreakHang}, want: odl.Response{Failure: odl.FailureTimeout}},
		"silent, done":               {fault: odltest.Fault{Break: odltest.BreakHang, Applied: true}, want: odl.Response{Failure: odl.FailureTimeout}, applied: 1},
		"reset":                      {fault: odltest.Fault{Break: odltest.BreakReset}, want: odl.Response{Failure: odl.FailureReset}},
		"reset, done":                {fault: odltest.Fault{Break: odltest.BreakReset, Applied: true}, want: odl.Response{Failure: odl.FailureReset}, applied: 1},
		"cut after the status":       {fault: odltest.Fault{Break: odltest.BreakCut, Applied: true}, want: odl.Response{Status: 201}, applied: 1},
		"cut during a read":          {fault: odltest.Fault{Break: odltest.BreakCut}, method: "GET", want: odl.Response{Failure: odl.FailureReset}},
		"garbage":                    {fault: odltest.Fault{Status: 200, Body: "<html>\x00"}, want: odl.Response{Status: 200, Body: []byte("<html>\x00")}},
		"empty body instead of JSON": {fault: odltest.Fault{Status: 204}, method: "GET", want: odl.Response{Status: 204, Body: []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := odltest.New()
				client := newMemoryClient(t,
					odl.Config{URL: odltest.BasePath + "/", Timeout: 30 * time.Second}, c)
				c.InjectFaults(tt.fault)

				method, path := "POST", "/networks"
				if tt.method == "GET" {
					method, path = "GET", "/networks/"+network
				}
				got := send(t, client, method, path, create)

				if (got.Detail == "") != (got.Failure == "") {
					t.Errorf(
						"send a request to a failing controller: got failure %q and detail %q, want both or neither",
						got.Failure,
						got.Detail,
					)
				}
				if tt.want.Body == nil {
					got.Body = nil
				}
				got.Detail = ""
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Error(d)
				}
				if n := c.Record("network", network).Creates; n != tt.applied {
					t.Errorf(
						"send a request to a failing controller: it applied the request %d times, want %d",
						n,
						tt.applied,
					)
				}
				if left := c.Faults(); len(left) > 0 {
					t.Errorf(
						"send a request to a failing controller: the injected faults %+v were not used",
						left,
					)
				}
			})
		})
	}
}

func TestSend_UnreachableWithoutListener(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://127.0.0.1:1", "http://no-such-host.invalid"} {
		a := send(t, newClient(t, odl.Config{URL: url}), "POST", "/networks", create)
		if a.Failure != odl.FailureUnreachable || a.Detail == "" {
			t.Errorf(
				"send a request to the unreachable URL %s: got %+v, want FailureUnreachable with a detail",
				url,
				a,
			)
		}
	}
}

func TestSend_RequiresTrustedCertificate(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	server := httptest.NewUnstartedServer(c)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	if a := send(t, newClient(t, odl.Config{URL: server.URL + odltest.BasePath}), "POST", "/networks", create); a.Failure != odl.FailureTLS {
		t.Errorf("send a request to a server with an untrusted certificate: got %+v, want FailureTLS", a)
	}
	if a := send(t, newClient(t, odl.Config{URL: server.URL + odltest.BasePath, CAPEM: ca}), "POST", "/networks", create); a.Status != 201 {
		t.Errorf("send a request to a server with a trusted certificate: got %+v, want status 201", a)
	}
	plain := strings.Replace(server.URL, "https", "http", 1)
	if a := send(t, newClient(t, odl.Config{URL: plain}), "POST", "/networks", create); a.Status != 400 {
		t.Errorf("send a plain HTTP request to a TLS port: got %+v, want status 400", a)
	}
}

func TestSend_HasCredentials(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	c.User, c.Password = "admin", "secret"
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	for password, want := range map[string]int{"secret": 201, "wrong": 401} {
		t.Run(password, func(t *testing.T) {
			config := odl.Config{URL: server.URL + odltest.BasePath, User: "admin", Password: password}
			body := strings.Replace(create, "1111", password, 1)
			a := send(t, newClient(t, config), "POST", "/networks", body)
			if a.Status != want {
				t.Errorf(
					"send a request with the password %s: got %+v, want status 201 for the password secret and 401 for any other",
					password,
					a,
				)
			}
		})
	}
}

// Requests and lists that follow one another use the same connection, whatever the responses are.
func TestSend_ReusesConnection(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	server := httptest.NewUnstartedServer(c)
	var opened atomic.Int64
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := newClient(t, odl.Config{URL: server.URL + odltest.BasePath})
	for range 20 {
		send(t, client, "POST", "/networks", create)
		send(t, client, "GET", "/networks/"+network, "")
		send(t, client, "DELETE", "/networks/none", "")
		if _, err := client.List(t.Context(), "/networks", "networks", func(json.RawMessage) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n > 2 { // one more if an idle connection was closed between two requests
		t.Errorf("send 80 requests one after the other: the client opened %d connections, want at most 2", n)
	}
}

func TestSend_EndOfContextIsAnError(t *testing.T) {
	t.Parallel()
	c, client := newController(t)
	c.InjectFaults(odltest.Fault{Break: odltest.BreakHang})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a, err := client.Send(ctx, odl.Request{Method: "POST", Path: "/networks", Body: []byte(create)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("send until the context ends: got %+v, error %v; want DeadlineExceeded", a, err)
	}
}

func TestNew_RefusesInvalidConfig(t *testing.T) {
	t.Parallel()
	for _, config := range []odl.Config{
		{}, {URL: "ftp://host/"}, {URL: "http:///path"}, {URL: "host:8080"}, {URL: "http://h/?a=b"}, {URL: "http://u:p@h/"},
		{URL: "http://h:port/"}, {URL: "http://h/", CAPEM: []byte("no PEM")},
	} {
		if _, err := odl.New(config); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf(
				"New with the invalid configuration %+v: got error %v, want an error that does not contain the password",
				config,
				err,
			)
		}
	}
}

func TestSend_BreakerOpensAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(
		t,
		func(t *testing.T) { // all requests are sent at the same time, so the breaker admits no probe
			c := odltest.New()
			client := newMemoryClient(t, odl.Config{URL: odltest.BasePath}, c)
			c.InjectFaults(odltest.Fault{Status: 503, Times: 1000})
			open := 0
			for range 200 {
				a := send(t, client, "POST", "/networks", create)
				if a.Failure == odl.FailureBreakerOpen {
					open++
					if a.RetryAfter <= 0 || a.RetryAfter > time.Minute || !strings.Contains(a.Detail, "503") {
						t.Fatalf(
							"send a request while the breaker is open: got %+v, want a bounded RetryAfter and the last failure",
							a,
						)
					}
				}
			}
			if seen := len(c.Requests()); seen != 5 || open != 195 {
				t.Errorf(
					"send 200 requests to a failing controller: it received %d and the breaker rejected %d, want 5 and 195",
					seen,
					open,
				)
			}
		},
	)
}

// FuzzAnswer lets a server send random bytes as its response. The client must return a Response or an error,
// and must not panic.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
	f.Add([]byte(
		"HTTP/1.1 503 x\r\nRetry-After: 99999999999999999999\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
	))
	f.Add([]byte("HTTP/1.1 302 x\r\nLocation: http://[::1\r\nSet-Cookie: a=b; Max-Age=-1\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 000\r\n\r\n"))
	f.Add([]byte("\x16\x03\x01"))
	answers := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write(<-answers)
		_ = conn.Close()
	}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, raw []byte) {
		client := newClient(t, odl.Config{URL: server.URL})
		answers <- raw
		a := send(t, client, "POST", "/networks", create)
		if (a.Failure == "") == (a.Status == 0) || a.RetryAfter < 0 || a.RetryAfter > 24*time.Hour {
			t.Errorf(
				"receive a random response: got %+v, want either a status or a failure, and a bounded RetryAfter",
				a,
			)
		}
		if a.Failure != "" && a.Failure != odl.FailureReset {
			t.Errorf("receive a random response: got %+v, want no other failure than FailureReset", a)
		}
	})
}
