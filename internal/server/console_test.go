package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server/servertest"
)

// postLogin sends the form of the console's login, and returns the answer without following its redirect.
func postLogin(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/console/login",
		strings.NewReader("token=admin"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w, err := once.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Body.Close()
	return w
}

func TestLogin_CookieIsSecureOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	a := servertest.StartApp(t, config.API, newTLSFiles(t, ca, "server").settings()...)
	w := postLogin(t, ca.client(), a.URL())
	if c := w.Cookies(); w.StatusCode != http.StatusSeeOther || len(c) != 1 || !c[0].Secure ||
		!c[0].HttpOnly ||
		c[0].SameSite != http.SameSiteStrictMode {
		t.Errorf(
			"log in over TLS: got %s with the cookies %v, want one that is Secure, HttpOnly and SameSite=Strict",
			w.Status,
			c,
		)
	}
}

// The console has a cookie, so a page of another site that CORS allows to call the APIs must not read the
// console.
func TestConsole_HasNoCORS(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API, "BERTH_CORS_ALLOWED_ORIGIN=https://dashboard.example.org")
	for path, want := range map[string]string{"/console/": "", "/console/login": "", "/networking/v2.0/ports": "https://dashboard.example.org"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "https://dashboard.example.org")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if got := w.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("GET %s from another origin: got Access-Control-Allow-Origin %q, want %q",
				path, got, want)
		}
	}
}

// TestConsole_StreamsEndWhenTheProcessStops leaves a live page open. If the page kept the process from
// stopping, StartApp would report that the app ended with an error.
func TestConsole_StreamsEndWhenTheProcessStops(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	t.Run("process", func(t *testing.T) {
		a := servertest.StartApp(t, config.API)
		r, err := http.NewRequest(
			http.MethodGet,
			a.URL()+"/console/",
			nil,
		) //nolint:noctx // the stream outlives the subtest
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("X-Auth-Token", "admin")
		w, err := http.DefaultClient.Do(r)
		if err != nil || w.StatusCode != http.StatusOK {
			t.Fatalf("open a stream: got %v, error %v, want 200", w, err)
		}
		go func() {
			_, err := io.Copy(io.Discard, w.Body)
			_ = w.Body.Close()
			ended <- err
		}()
	})
	if err := <-ended; err != nil {
		t.Errorf("the process stops: got the error %v at the end of the stream, want a regular end", err)
	}
}
