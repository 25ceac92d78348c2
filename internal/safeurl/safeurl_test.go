package safeurl_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

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
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		for block := make([]byte, 1<<16); size > 0; size -= len(block) {
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

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
