package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRouteByPrefix_PathsAreNotCleaned(t *testing.T) {
	t.Parallel()
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, name, " ", r.URL.Path)
		})
	}
	h := routeByPrefix(map[string]http.Handler{"networking": echo("n"), "agent/v1": echo("a")})
	for path, want := range map[string]string{
		"/networking":                  "n /networking",
		"/networking/":                 "n /networking/",
		"/networking//v2.0/../ports/.": "n /networking//v2.0/../ports/.",
		"/agent/v1/reports":            "a /agent/v1/reports",
		"/networkingx":                 "404",
		"//networking":                 "404",
		"/agent":                       "404",
		"/agent/v12":                   "404",
		"/":                            "404",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		h.ServeHTTP(w, r)
		got := w.Body.String()
		if w.Code != http.StatusOK {
			got = fmt.Sprint(w.Code)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("path %s: response of the handler or status (-want +got): %s", path, d)
		}
	}
}

func TestGetOnly_AnswerDoesNotRepeatALongMethod(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	r.Method = strings.Repeat("M", 60000)
	w := httptest.NewRecorder()
	if getOnly(serveHealth).ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed || w.Body.Len() > 1024 {
		t.Errorf("method of 60,000 characters: got %d with %d bytes, want 405 with a short body", w.Code, w.Body.Len())
	}
}
