package odl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/odl"
)

// newListClient returns a client of an HTTP server with this handler.
func newListClient(t *testing.T, f http.HandlerFunc) *odl.Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return newClient(t, odl.Config{URL: server.URL})
}

func TestList_ReadsListLargerThanTheBodyLimit(t *testing.T) {
	t.Parallel()
	const objects = 400
	big := strings.Repeat("x", 100_000) // 40 MB for the whole list
	c := newListClient(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"links":[{"next":null}],"networks":[`)
		for i := range objects {
			if i > 0 {
				_, _ = fmt.Fprint(w, ",")
			}
			_, _ = fmt.Fprintf(w, `{"id":"%d","name":"%s"}`, i, big)
		}
		_, _ = fmt.Fprint(w, `],"more":{}}`)
	})
	n := 0
	a, err := c.List(t.Context(), "/networks", "networks", func(raw json.RawMessage) error {
		var o struct{ ID string }
		if err := json.Unmarshal(raw, &o); err != nil || o.ID != fmt.Sprint(n) {
			return fmt.Errorf("object number %d of the list: got %.40s, error %v", n, raw, err)
		}
		n++
		return nil
	})
	if err != nil || a.Status != 200 || a.Failure != "" || n != objects {
		t.Errorf(
			"read a large list: got %d objects, response %+v, error %v; want all objects and no error",
			n, a, err,
		)
	}
}

func TestList_UnexpectedBodyIsNotAFailure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer  string
		status  int
		then    string // what the server does after `answer`: cut or hang the response
		trouble odl.Failure
		foreign bool
		objects int
	}{
		"whole":            {answer: `{"networks":[{"id":"1"},{"id":"2"}]}`, objects: 2},
		"empty":            {answer: `{"networks":[]}`},
		"page of a portal": {answer: `<html>`, foreign: true},
		"nothing":          {answer: ``, foreign: true},
		"other list":       {answer: `{"ports":[{}]}`, foreign: true},
		"no list":          {answer: `{"networks":{}}`, foreign: true},
		"list alone":       {answer: `[{"id":"1"}]`, foreign: true},
		"half":             {answer: `{"networks":[{"id":"1"}`, foreign: true, objects: 1},
		"one without end":  {answer: `{"networks":[{"id":"` + strings.Repeat("x", 17<<20), foreign: true},
		"cut": {
			answer:  `{"networks":[{"id":"1"},`,
			then:    "cut",
			trouble: odl.FailureReset,
			objects: 1,
		},
		"silent in between": {
			answer:  `{"networks":[{"id":"1"},`,
			then:    "hang",
			trouble: odl.FailureTimeout,
			objects: 1,
		},
		"silent at once": {then: "hang", trouble: odl.FailureTimeout},
		"no such list":   {status: 404, answer: "no such collection"},
		"overload":       {status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newMemoryClient(t, odl.Config{Timeout: time.Minute},
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if tt.status != 0 {
							w.WriteHeader(tt.status)
						}
						if tt.answer != "" {
							_, _ = fmt.Fprint(w, tt.answer)
							_ = http.NewResponseController(w).Flush()
						}
						switch tt.then {
						case "cut":
							panic(http.ErrAbortHandler)
						case "hang":
							<-r.Context().Done()
						}
					}))
				n := 0
				a, err := c.List(t.Context(), "/networks", "networks", func(json.RawMessage) error {
					n++
					return nil
				})
				if errors.Is(err, odl.ErrUnexpectedBody) != tt.foreign || (err != nil) != tt.foreign ||
					a.Failure != tt.trouble ||
					n != tt.objects {
					t.Errorf(
						"read an interrupted or malformed list: got %d objects, response %+v, error %v; want the objects, the failure and the error of this test case",
						n, a, err,
					)
				}
				if tt.trouble == "" && a.Status != max(tt.status, 200) {
					t.Errorf("read a list: got status %d, want the status that the server sent", a.Status)
				}
			})
		})
	}
}

// The client's timeout does not run while the callback runs.
func TestList_SlowCallbackIsNoTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newMemoryClient(t, odl.Config{Timeout: time.Second},
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(w, `{"networks":[{},{},{},{},{},{}]}`)
			}))
		a, err := c.List(t.Context(), "/networks", "networks", func(json.RawMessage) error {
			time.Sleep(2 * time.Second)
			return nil
		})
		if err != nil || a.Failure != "" {
			t.Errorf(
				"read a list with a callback that is slower than the timeout: got response %+v, error %v; want success",
				a,
				err,
			)
		}
	})
}

func TestList_EndsWithCallbackError(t *testing.T) {
	t.Parallel()
	c := newListClient(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, `{"networks":[{},`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	enough := errors.New("enough")
	_, err := c.List(t.Context(), "/networks", "networks", func(json.RawMessage) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf(
			"read a list with a callback that returns an error: got error %v, want the callback's error",
			err,
		)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = c.List(ctx, "/networks", "networks", func(json.RawMessage) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf(
			"read a list with a callback that cancels the context: got error %v, want context.Canceled",
			err,
		)
	}
}
