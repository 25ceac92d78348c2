// Package openapitest compares the answers of berth's APIs with the OpenAPI documents of the APIs. An answer
// that differs from its document fails the test in which the server runs.
//
// Package openapitest compares every answer below the paths of a document, with these limits:
//   - the server itself, and not an API, answers requests that are malformed as HTTP, and requests to paths
//     of no API;
//   - an answer to a method or a path that the document does not describe has to be an error of the API;
//   - an answer with more than 32 MiB is a failure, because only its status and headers are compared;
//   - a document describes one microversion, so of a success with another one, only the ID of the request
//     is compared;
//   - an answer that the server breaks off, or that the client does not read to its end, is not compared;
//   - osapi.CORS, and not the API, answers a request that a browser sends before another request.
package openapitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"berth/internal/api/openapi"
	"berth/internal/api/osapi"
)

// maxBody is the maximum size of a body that is compared with its document, in bytes. The memory that the
// comparison needs grows with this size, and not with the answer.
const maxBody = 32 << 20

// maxReported is the maximum number of differences that one server reports, so that the output stays readable
// if a test sends the same request again and again.
const maxReported = 20

// API returns a handler that serves an API, and that compares each answer with the document that is built
// from the description of the API.
func API(t testing.TB, description openapi.API, api *osapi.API) http.Handler {
	t.Helper()
	raw, err := openapi.Build(description, api)
	if err != nil {
		t.Fatal(err)
	}
	documents := openapi.Handlers([]openapi.Document{{Name: description.Name, JSON: raw}})
	return Handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, ok := documents[r.URL.Path]; ok {
			h(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
}

// Proxy starts a proxy that passes requests to the server at the given URL, and that compares each answer
// with the documents of the server. Proxy returns the URL of the proxy. The proxy runs until the test ends.
// It breaks off the connection of a client when the server breaks off the answer or does not listen.
func Proxy(t testing.TB, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	proxy := httptest.NewServer(Handler(t, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
			for name, values := range r.In.Header {
				if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" {
					r.Out.Header[name] = values
				}
			}
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections() // ends streams, for which Close would wait
		proxy.Close()
		transport.CloseIdleConnections()
	})
	return proxy.URL
}

// Handler returns a handler that passes requests to the handler h, and that compares each answer with the
// documents that h serves below openapi.Path.
func Handler(t testing.TB, h http.Handler) http.Handler { return &checker{t: t, handler: h} }

type checker struct {
	t         testing.TB
	handler   http.Handler
	mu        sync.Mutex
	documents []*document // nil before the first request
	reported  atomic.Int64
}

func (c *checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, strings.TrimSuffix(openapi.Path, "/")) {
		c.handler.ServeHTTP(w, r)
		return
	}
	documents, err := c.load(r)
	if err != nil {
		c.t.Errorf("read the OpenAPI documents: %v", err)
	}
	request := r.Clone(r.Context()) // because handlers change their request
	recorder := &recorder{ResponseWriter: w}
	c.handler.ServeHTTP(recorder, r)
	recorder.WriteHeader(http.StatusOK) // has no effect if the handler has written a status
	if recorder.broken || r.Context().Err() != nil {
		return
	}
	for _, d := range documents {
		if !d.describes(request.URL.Path) {
			continue
		}
		recorder.request = request
		for _, difference := range d.differences(recorder.answer) {
			if c.reported.Add(1) > maxReported {
				return
			}
			c.t.Errorf("%s %s: the answer with status %d differs from the OpenAPI document of %s: %s\n%.600s",
				request.Method, request.URL, recorder.status, d.prefix, difference, recorder.body)
		}
	}
}

// load returns the documents that the server serves: none if the server has no API.
func (c *checker) load(r *http.Request) ([]*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.documents != nil {
		return c.documents, nil
	}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		q := httptest.NewRequestWithContext(r.Context(), http.MethodGet, path, nil)
		q.Host = "localhost" // with BERTH_AUTH=noauth, berth refuses hosts that are not loopback addresses
		c.handler.ServeHTTP(w, q)
		return w
	}
	documents := []*document{}
	index := get(openapi.Path)
	switch index.Code {
	default:
		return nil, fmt.Errorf("GET %s: status %d", openapi.Path, index.Code)
	case http.StatusNotFound:
	case http.StatusOK:
		var list struct{ Documents []struct{ Href string } }
		if err := json.Unmarshal(index.Body.Bytes(), &list); err != nil {
			return nil, err
		}
		for _, entry := range list.Documents {
			d, err := compile(get(entry.Href).Body.Bytes())
			if err != nil {
				return nil, fmt.Errorf("document %s: %w", entry.Href, err)
			}
			documents = append(documents, d)
		}
	}
	c.documents = documents
	return documents, nil
}

// recorder records the answer that a handler writes.
type recorder struct {
	http.ResponseWriter
	answer
	broken bool // a part of the answer could not be sent
}

// WriteHeader records the status and the headers, unless the status is informational, such as 103.
func (w *recorder) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status, w.header = status, w.Header().Clone()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write records the first maxBody bytes of the body.
func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	recorded := b[:min(len(b), maxBody-len(w.body))]
	w.body, w.long = append(w.body, recorded...), w.long || len(recorded) < len(b)
	n, err := w.ResponseWriter.Write(b)
	w.broken = w.broken || err != nil
	return n, err
}

// FlushError sends what has been written. http.ResponseController calls it.
func (w *recorder) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.broken = w.broken || err != nil
	return err
}

// Unwrap returns the underlying http.ResponseWriter, so that http.ResponseController finds it.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
