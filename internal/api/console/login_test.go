package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"berth/internal/api/console"
	"berth/internal/identity"
)

func TestLogin_NoCacheKeepsAnAnswerWithACookie(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for name, r := range map[string]request{
		"log in":  {"POST", "/console/login", "token=admin", browser("")},
		"log out": {"POST", "/console/logout", "", browser("admin")},
	} {
		answer, _ := e.send(h, r)
		if len(answer.Cookies()) != 1 || answer.StatusCode != http.StatusSeeOther ||
			answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %s with %d cookies and Cache-Control %q, want 303 with one cookie and no-store",
				name, answer.Status, len(answer.Cookies()), answer.Header.Get("Cache-Control"))
		}
	}
}

func TestLogin_FormDoesNotRepeatLongPaths(t *testing.T) {
	t.Parallel()
	api := console.New(console.Options{Identity: identity.Noauth{}, Live: console.NewLive()})
	long := strings.Repeat(`"`, 60000)
	for _, path := range []string{"/console/login?next=/console/?" + url.QueryEscape(long), "/console/?" + long, "/console/" + url.PathEscape(long)} {
		for token, next := range map[string]string{"": `name="next" value="/console/"`, "a": "Log in again"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/", nil)
			var err error
			if r.URL, err = url.ParseRequestURI(path); err != nil {
				t.Fatal(err)
			}
			r.Header = browser("")
			if token != "" {
				r.Header.Set("Cookie", "berth_console=-")
			}
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if body := w.Body.String(); len(body) > 8<<10 || !strings.Contains(body, `name="next" value="/console/"`) {
				t.Errorf("GET %.40s… with the cookie %q: got %d with %d bytes, want a form of at most 8 kB that leads to the first page",
					path, token, w.Code, len(body))
			} else if r.URL.Path != "/console/login" && !strings.Contains(body, next) {
				t.Errorf("GET %.40s… with the cookie %q: the form does not contain %q", path, token, next)
			}
		}
	}
}
