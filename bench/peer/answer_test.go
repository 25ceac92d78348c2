package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"berth/internal/devstack"
)

// serve returns a peer whose server answers each request with the handler.
func serve(t *testing.T, prefix string, handler http.HandlerFunc) *peer {
	t.Helper()
	server, err := devstack.Serve(0, handler)
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer("server", strings.TrimPrefix(server.URL, "http://"), prefix, 1)
	t.Cleanup(func() {
		p.connections.Close()
		server.Stop()
	})
	return p
}

// answering returns a peer whose server answers each request with the body.
func answering(t *testing.T, prefix, body string) *peer {
	t.Helper()
	return serve(t, prefix, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
}

func TestAnswerCheck_ComparesAnswersWithoutOrderAndPrefix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		one, other string
		equal      bool
	}{
		"same":        {`{"a":[1,2]}`, `{"a":[1,2]}`, true},
		"other order": {`{"a":[1,{"b":2,"c":3}]}`, `{"a":[{"c":3,"b":2},1]}`, true},
		"link":        {`{"href":"/placement/usages"}`, `{"href":"/usages"}`, true},
		"value":       {`{"a":1}`, `{"a":2}`, false},
		"type":        {`{"a":1}`, `{"a":"1"}`, false},
		"key":         {`{"a":1}`, `{"a":1,"b":null}`, false},
		"repeated":    {`[1,1]`, `[1]`, false},
		"no body":     {``, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := answerCheck{peers: [2]*peer{answering(t, "/placement", c.one), answering(t, "", c.other)}}
			err := check.compare(request{method: "GET", path: "/usages"})
			if (err == nil) != c.equal {
				t.Errorf("compare %s with %s: got %v, want equal %t", c.one, c.other, err, c.equal)
			}
		})
	}
}

func TestAnswerCheck_LimitedCandidatesMayDifferButAreAmongAll(t *testing.T) {
	t.Parallel()
	const all = `{"allocation_requests":[{"a":1},{"a":2},{"a":3}],"provider_summaries":{"1":{},"2":{},"3":{}}}`
	limited := func(body string) *peer {
		return serve(t, "", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("limit") {
				_, _ = io.WriteString(w, body)
				return
			}
			_, _ = io.WriteString(w, all)
		})
	}
	const first = `{"allocation_requests":[{"a":1}],"provider_summaries":{"1":{}}}`
	for name, c := range map[string]struct {
		other string
		equal bool
	}{
		"other candidate": {`{"allocation_requests":[{"a":3}],"provider_summaries":{"3":{}}}`, true},
		"two candidates":  {`{"allocation_requests":[{"a":1},{"a":3}],"provider_summaries":{"1":{},"3":{}}}`, false},
		"unknown":         {`{"allocation_requests":[{"a":4}],"provider_summaries":{"1":{}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := answerCheck{peers: [2]*peer{limited(first), limited(c.other)}}
			err := check.compareCandidates(candidates("&limit=1")(dataset{}, 0))
			if (err == nil) != c.equal {
				t.Errorf("compare %s with %s: got %v, want equal %t", first, c.other, err, c.equal)
			}
		})
	}
}

func TestSendAll_RepeatsConflictsAndStopsAtOtherErrors(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	p := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/fails":
			w.WriteHeader(http.StatusBadRequest)
		case sent.Add(1)%3 != 0:
			w.WriteHeader(http.StatusConflict)
		}
	})
	requests := func(path string) func(int) []request {
		return func(int) []request { return []request{{method: "GET", path: path}} }
	}
	b, err := p.sendAll(t.Context(), 0, 4, requests("/conflicts"))
	if err != nil || len(b.times) != 4 || b.conflicts != 8 {
		t.Errorf("4 requests with 2 conflicts each: got %d requests, %d conflicts, error %v", len(b.times), b.conflicts, err)
	}
	if _, err := p.sendAll(t.Context(), 0, 4, requests("/fails")); err == nil || errors.Is(err, errConflict) {
		t.Errorf("a request with the status 400: got error %v, want one", err)
	}
}
