package safeurl_test

import (
	"errors"
	"net/http"
	"net/url"
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
			})),
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

// roundTripper is a function that is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
