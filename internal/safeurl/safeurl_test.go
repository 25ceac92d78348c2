package safeurl_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"berth/internal/safeurl"
)

func TestTransport_RefusesDotSegments(t *testing.T) {
	t.Parallel()
	for path, refused := range map[string]bool{
		"/a/b":                             false,
		"/a/..b/c.":                        false,
		"/a/" + safeurl.Segment("b?c=d#e"): false,
		"/a/" + safeurl.Segment("b/c"):     false,
		"/a/" + safeurl.Segment(".."):      true,
		"/a/./b":                           true,
		"/a/%2e%2e/b":                      true,
		"/a/" + safeurl.Segment("../b"):    true,
		"/a/" + safeurl.Segment(`..\b`):    true,
		"/a/..":                            true,
		"/a/" + safeurl.Segment("%2e%2e"):  false,
	} {
		var sent *url.URL
		client := http.Client{
			Transport: safeurl.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
				sent = r.URL
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
			}), 1),
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://service.test"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		if errors.Is(err, safeurl.ErrPath) != refused || (sent == nil) != refused {
			t.Errorf("request for %s: got error %v and request %v, want it refused: %t",
				path, err, sent, refused)
		}
		if !refused && (sent.RequestURI() != path || sent.RawQuery != "") {
			t.Errorf("request for %s: got %s, want the same path and no query", path, sent.RequestURI())
		}
	}
}

func TestTransport_LimitsTheBodiesOfAnswers(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out io.Writer = w
		if r.URL.Path == "/gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			defer func() { _ = zip.Close() }()
			out = zip
		}
		if r.URL.Path == "/error" {
			w.WriteHeader(http.StatusBadGateway)
		}
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		block := make([]byte, 1<<16)
		if text := r.URL.Query().Get("text"); text != "" {
			block = []byte(strings.Repeat(text, 1+len(block)/len(text)))
		}
		for ; size > 0; size -= len(block) {
			if _, err := out.Write(block[:min(size, len(block))]); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	client := http.Client{Transport: safeurl.Transport(&http.Transport{}, limit)}
	t.Cleanup(client.CloseIdleConnections)
	for request, wantErr := range map[string]error{
		"/plain?size=0":         nil,
		"/plain?size=1048576":   nil,
		"/plain?size=1048577":   safeurl.ErrAnswerTooLarge,
		"/plain?size=999999999": safeurl.ErrAnswerTooLarge,
		"/gzip?size=1048576":    nil,
		"/gzip?size=99999999":   safeurl.ErrAnswerTooLarge,
		"/json?size=9999&text=" + url.QueryEscape(`{"a":[1]},`):        nil,
		"/json?size=999999&text=" + url.QueryEscape(`"a b c d e f",`):  nil,
		"/json?size=999999&text=" + url.QueryEscape(`"{{{{\\\"{{{{",`): nil,
		"/json?size=999999&text=" + url.QueryEscape(`{},`):             safeurl.ErrAnswerTooLarge,
		"/json?size=999999&text=" + url.QueryEscape(`[],`):             safeurl.ErrAnswerTooLarge,
		"/json?size=999999&text=" + url.QueryEscape(`"\\",{},`):        safeurl.ErrAnswerTooLarge,
		"/error?size=65536":  nil,
		"/error?size=999999": safeurl.ErrAnswerTooLarge,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+request, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if len(body) > limit || !errors.Is(err, wantErr) {
			t.Errorf("read the answer to %s: got %d bytes and error %v, want at most %d and error %v",
				request, len(body), err, limit, wantErr)
		}
	}
}

func TestTransport_FewLargeAnswersAreReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := safeurl.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
			size, _ := strconv.Atoi(r.URL.Query().Get("size"))
			body := io.NopCloser(strings.NewReader(strings.Repeat("x", size)))
			return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
		}), 8<<20)
		read := func(ctx context.Context, size string) (io.Closer, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service.test/?size="+size, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			return resp.Body, err
		}
		const large, small = "4000000", "40000"
		var open []io.Closer
		var waiting sync.WaitGroup
		var ended atomic.Int32
		for range 6 {
			waiting.Go(func() {
				body, err := read(t.Context(), large)
				if err != nil {
					t.Errorf("read a large answer: %v", err)
				}
				if ended.Add(1) <= 4 {
					open = append(open, body)
					return
				}
				_ = body.Close()
			})
			synctest.Wait()
		}
		if n := ended.Load(); n != 4 {
			t.Errorf("of 6 large answers whose bodies are not closed, %d were read, want 4", n)
		}
		if _, err := read(t.Context(), small); err != nil {
			t.Errorf("read a small answer beside large ones: %v", err)
		}
		cancelled, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := read(cancelled, large); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read another large answer: got error %v, want it to wait until its deadline", err)
		}
		for _, body := range open {
			_ = body.Close()
		}
		waiting.Wait()
	})
}

func TestClient_LimitsTheHeadersOfAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		for i := range size >> 10 {
			w.Header().Add("X-"+strconv.Itoa(i), strings.Repeat("y", 1<<10))
		}
	}))
	t.Cleanup(server.Close)
	client := safeurl.Client(time.Hour, nil, 1)
	t.Cleanup(client.CloseIdleConnections)
	for size, refused := range map[string]bool{"100000": false, "1000000": true} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"?size="+size, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err != nil) != refused {
			t.Errorf("an answer with %s bytes of headers: got error %v, want it refused: %t", size, err, refused)
		}
	}
}

// Package net/http quotes a header without a colon as it is in its error.
func TestClient_ErrorsAreOneShortLine(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\xff\x01\x1b[2J"+strings.Repeat("y", 100_000)+"\r\n\r\n")
	}))
	t.Cleanup(server.Close)
	client := safeurl.Client(time.Hour, nil, 1)
	t.Cleanup(client.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("an answer with a malformed header: got no error, want one")
	}
	var broken textproto.ProtocolError
	if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, unicode.IsControl) ||
		!utf8.ValidString(text) || !errors.As(err, &broken) {
		t.Errorf("an answer with a malformed header: got the error %.300q with %d bytes, want one short line",
			text, len(text))
	}
}

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
