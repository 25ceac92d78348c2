package osapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
)

// testPage is one page of a list in a test.
type testPage struct {
	items []any
	err   error
	wait  time.Duration // how long the read of the page takes
}

// serveList serves a list with the given pages. The channel `ended` is closed when the first response has
// ended.
func serveList(
	t *testing.T,
	writeTimeout time.Duration,
	pages ...testPage,
) (server *httptest.Server, ended chan struct{}) {
	t.Helper()
	api := &osapi.API{
		Prefix:   "/a",
		Identity: identity.Noauth{},
		Routes: []osapi.Route{{Method: "GET", Path: "/list", Handle: func(r *http.Request) (int, any, error) {
			left := pages
			return osapi.StreamList(r, "things", nil, func(ctx context.Context) ([]any, bool, error) {
				p := left[0]
				left = left[1:]
				time.Sleep(p.wait)
				return p.items, len(left) == 0, errors.Join(p.err, ctx.Err())
			})
		}}},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
			osapi.WriteJSON(w, e.Status, map[string]string{"message": e.Message})
		},
		Timeout: 2 * time.Minute,
	}
	ended = make(chan struct{})
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		api.ServeHTTP(w, r)
	}))
	server.Config.WriteTimeout = writeTimeout
	server.Start()
	t.Cleanup(server.Close)
	return server, ended
}

func readList(t *testing.T, server *httptest.Server) (status int, body string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/a/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if kind := answer.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("list: got the Content-Type %q, want application/json", kind)
	}
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(raw), err
}

func TestStreamList_WritesTheItemsOfAllPages(t *testing.T) {
	t.Parallel()
	for want, pages := range map[string][]testPage{
		`{"things":[]}`:                   {{}},
		`{"things":[1]}`:                  {{items: []any{1}}},
		`{"things":[{"a":"<&>"},"b",[]]}`: {{}, {items: []any{map[string]any{"a": "<&>"}, "b"}}, {}, {items: []any{[]int{}}}, {}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server, _ := serveList(t, 0, pages...)
			if status, body, err := readList(t, server); status != 200 || body != want || err != nil {
				t.Errorf("list: got status %d, body %s, error %v; want 200 and %s", status, body, err, want)
			}
		})
	}
}

func TestStreamList_ListWithoutItsEndDoesNotLookComplete(t *testing.T) {
	t.Parallel()
	server, _ := serveList(t, 0,
		testPage{err: osapi.Fault(http.StatusServiceUnavailable, "", "Try again later.")})
	if status, body, err := readList(t, server); status != 503 || body != `{"message":"Try again later."}` ||
		err != nil {
		t.Errorf(
			"list whose first page cannot be read: got status %d, body %s, error %v; want 503 with the message",
			status, body, err,
		)
	}
	server, _ = serveList(t, 0, testPage{items: []any{1}},
		testPage{items: []any{strings.Repeat("x", 1<<20)}}, testPage{err: io.ErrClosedPipe})
	if status, body, err := readList(t, server); status != 200 || !errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.HasSuffix(body, "]}") {
		t.Errorf(
			"list whose last page cannot be read: got status %d, a body that ends in %q, error %v; want a broken connection",
			status, body[max(0, len(body)-10):], err,
		)
	}
}

func TestStreamList_TimeoutHoldsForEachPage(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	server, _ := serveList(t, timeout, testPage{items: []any{1}},
		testPage{items: []any{2}, wait: timeout + time.Second}, testPage{items: []any{3}})
	if status, body, err := readList(t, server); status != 200 || body != `{"things":[1,2,3]}` || err != nil {
		t.Errorf(
			"list that takes longer than the timeout, but no page does: got status %d, body %q, error %v; want the whole list",
			status, body, err,
		)
	}
}

func TestStreamList_ClientThatStopsReadingLosesItsConnection(t *testing.T) {
	t.Parallel()
	const size = 64 << 20 // more than all buffers between the server and the client
	server, ended := serveList(t, 100*time.Millisecond, testPage{items: []any{1}},
		testPage{items: []any{strings.Repeat("x", size)}}, testPage{items: []any{2}})
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprint(conn, "GET /a/list HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Fatal(
			"list whose client reads nothing: the response has not ended after five minutes, want its end after the write timeout",
		)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return // the connection was broken before the header was sent
	}
	defer func() { _ = answer.Body.Close() }()
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf(
			"list whose client stopped reading: got %d bytes and the end of the list, want a broken connection",
			n,
		)
	}
}
