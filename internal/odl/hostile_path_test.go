package odl_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"berth/internal/odl"
)

// recordedRequests is a transport that records the paths of requests, and answers with a stream whose name is
// `value`.
type recordedRequests struct {
	value string
	uris  []string
}

// RoundTrip implements http.RoundTripper.
func (t *recordedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	t.uris = append(t.uris, r.URL.RequestURI())
	return &http.Response{
		StatusCode: http.StatusOK,
		Request:    r,
		Header:     http.Header{},
		Body: io.NopCloser(
			bytes.NewReader([]byte(`{"output":{"stream-name":` + strconv.Quote(t.value) + `}}`)),
		),
	}, nil
}

func TestRequests_HostileIDsStayBelowTheirCollection(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"harmless", "..", ".", "../../../restconf/config", "a?b=c", "a#b", "a/../../b", "%2e%2e", "a b"} {
		transport := &recordedRequests{value: value}
		c := newClient(t, odl.Config{
			URL:  "http://odl.test/controller/nb/v2/neutron",
			Wrap: func(http.RoundTripper) http.RoundTripper { return transport },
		})
		sent := send(t, c, "PUT", "/networks/"+url.PathEscape(value), create)
		_, _ = c.PortStatus(t.Context(), value)
		_ = c.Watch(t.Context(), odl.TopicPorts, func() {}, func(odl.ChangeEvent) {})
		refused := strings.Contains(value, "..") || value == "."
		if (sent.Failure == odl.FailureInvalidRequest) != refused ||
			value == "harmless" && len(transport.uris) != 4 {
			t.Errorf("requests with the ID %q: got %v and failure %q, want the request refused: %t",
				value, transport.uris, sent.Failure, refused)
		}
		for _, uri := range transport.uris {
			uri = strings.TrimSuffix(uri, "?odl-leaf-nodes-only=true")
			path, _ := url.PathUnescape(uri)
			below := strings.HasPrefix(uri, "/controller/nb/v2/neutron/networks/") ||
				strings.HasPrefix(uri, "/restconf/operational/neutron:neutron/ports/port/") ||
				strings.HasPrefix(uri, "/restconf/operations/sal-remote:create-") ||
				strings.HasPrefix(uri, "/restconf/streams/stream/")
			if !below || strings.ContainsAny(uri, "?#") || strings.Contains(path, "/../") ||
				strings.HasSuffix(path, "/..") {
				t.Errorf(
					"request with the ID %q: got %s, want a path below its collection and no query",
					value,
					uri,
				)
			}
		}
	}
}
