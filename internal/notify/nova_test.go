package notify_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/notify"
	"berth/internal/notify/notifytest"
)

var plugged = notify.Event{
	Server: "11111111-1111-4111-8111-111111111111",
	Name:   "network-vif-plugged",
	Status: "completed",
	Tag:    "22222222-2222-4222-8222-222222222222",
}

func newNova(t *testing.T, timeout time.Duration) (*notifytest.Nova, *notify.Nova) {
	t.Helper()
	stub := &notifytest.Nova{Token: "secret"}
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	client, err := notify.NewNova(
		notify.Config{URL: server.URL + "/v2.1/", Token: "secret", Timeout: timeout},
	)
	if err != nil {
		t.Fatal(err)
	}
	return stub, client
}

func TestNovaSend_RequestForm(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r, string(raw)
		_, _ = io.WriteString(w, `{"events":[{"code":200},{"code":422}]}`)
	}))
	t.Cleanup(server.Close)
	client, err := notify.NewNova(
		notify.Config{URL: server.URL + "/v2.1", Token: "secret", Timeout: time.Hour},
	)
	if err != nil {
		t.Fatal(err)
	}

	codes, err := client.Send(t.Context(),
		[]notify.Event{plugged, {Server: "s", Name: "network-vif-deleted", Tag: "p"}})

	if d := cmp.Diff([]int{200, 422}, codes); d != "" || err != nil {
		t.Error(d, err)
	}
	want := `{"events":[{"server_uuid":"` + plugged.Server + `","name":"network-vif-plugged","status":"completed","tag":"` + plugged.Tag + `"},` +
		`{"server_uuid":"s","name":"network-vif-deleted","tag":"p"}]}`
	if d := cmp.Diff(want, body); d != "" {
		t.Error(d)
	}
	if got.Method != "POST" || got.URL.Path != "/v2.1/os-server-external-events" {
		t.Errorf("request for external events: got %s %s, want POST /v2.1/os-server-external-events",
			got.Method, got.URL.Path)
	}
	for name, value := range map[string]string{
		"Content-Type":                 "application/json",
		"X-Auth-Token":                 "secret",
		"X-OpenStack-Nova-API-Version": "2.1",
		"X-OpenStack-Request-ID":       "req-",
	} {
		if !strings.HasPrefix(got.Header.Get(name), value) {
			t.Errorf("request header %s: got %q, want it to begin with %q", name, got.Header.Get(name), value)
		}
	}
}

func TestNovaSend_StatusesAndCodes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault   notifytest.Fault
		codes   []int
		refused bool
		taken   int
	}{
		"all well":          {codes: []int{200}, taken: 1},
		"slow":              {fault: notifytest.Fault{DelayMS: 20}, codes: []int{200}, taken: 1},
		"an unknown server": {fault: notifytest.Fault{Code: 404}, codes: []int{404}, taken: 1},
		"knows none":        {fault: notifytest.Fault{Status: 404}, codes: []int{404}},
		"bad request":       {fault: notifytest.Fault{Status: 400}, refused: true},
		"too large":         {fault: notifytest.Fault{Status: 413}, refused: true},
		"unauthorized":      {fault: notifytest.Fault{Status: 401}},
		"forbidden":         {fault: notifytest.Fault{Status: 403}},
		"overload":          {fault: notifytest.Fault{Status: 503}},
		"too many":          {fault: notifytest.Fault{Status: 429}},
		"redirect":          {fault: notifytest.Fault{Status: 302}},
		"lost before":       {fault: notifytest.Fault{DropConnection: true}},
		"lost after":        {fault: notifytest.Fault{DropConnection: true, Applied: true}, taken: 1},
		"silence":           {fault: notifytest.Fault{DelayMS: 60_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := time.Hour
			if tt.fault.DelayMS > 1000 {
				timeout = 100 * time.Millisecond
			}
			stub, client := newNova(t, timeout)
			stub.InjectFaults(tt.fault)

			codes, err := client.Send(t.Context(), []notify.Event{plugged})

			if d := cmp.Diff(tt.codes, codes); d != "" {
				t.Error(d, err)
			}
			if (err == nil) != (tt.codes != nil) || errors.Is(err, notify.ErrRejected) != tt.refused {
				t.Errorf("send an event: got error %v, want success %v, rejected %v",
					err, tt.codes != nil, tt.refused)
			}
			if tooLarge := tt.fault.Status == 413; errors.Is(err, notify.ErrTooLarge) != tooLarge {
				t.Errorf("send an event: got error %v, want ErrTooLarge %v", err, tooLarge)
			}
			if n := len(stub.Events()); n != tt.taken {
				t.Errorf("events that Nova received: got %d, want %d", n, tt.taken)
			}
		})
	}
}

// If the response 404 comes from a proxy or a wrong URL, Nova.Send must return an error, so that the caller
// keeps the events and sends them again.
func TestNovaSend_NotFoundCountsOnlyWithNovasErrorBody(t *testing.T) {
	t.Parallel()
	for body, knows := range map[string]bool{
		``:             false,
		`<h1>404</h1>`: false,
		`{"message":"The resource could not be found."}`: false,
		`[]`:                    false,
		`{"itemNotFound":null}`: false,
		`{"itemNotFound":{"code":404,"message":"No instances found for any event"}}`: true,
	} {
		t.Run(body, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(server.Close)
			client, err := notify.NewNova(notify.Config{URL: server.URL, Timeout: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			codes, err := client.Send(t.Context(), []notify.Event{plugged})
			if (err == nil) != knows || knows != slices.Equal(codes, []int{404}) ||
				errors.Is(err, notify.ErrRejected) {
				t.Errorf(
					"send an event, answer 404 with the body %q: got codes %v, error %v; want a code only for Nova's own error body",
					body, codes, err,
				)
			}
		})
	}
}

func TestNovaSend_ConnectionFailuresAreTransient(t *testing.T) {
	t.Parallel()
	client, err := notify.NewNova(notify.Config{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Send(t.Context(), []notify.Event{plugged}); err == nil ||
		errors.Is(err, notify.ErrRejected) {
		t.Errorf("send to an unreachable Nova: want a transient error, got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Send(gone, []notify.Event{plugged}); !errors.Is(err, context.Canceled) {
		t.Errorf("send with a cancelled context: got error %v, want context.Canceled", err)
	}
	if codes, err := client.Send(gone, nil); codes != nil || err != nil {
		t.Errorf("send no events: got codes %v, error %v; want no codes and no error", codes, err)
	}
}

func TestNewNova_RefusesInvalidURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "host", "ftp://h", "http://u:p@h", "http://h?a=b", "http://h:port"} {
		if _, err := notify.NewNova(notify.Config{URL: url}); err == nil ||
			strings.Contains(err.Error(), "u:p") {
			t.Errorf("NewNova with the URL %q: got error %v, want one without the password", url, err)
		}
	}
}

func TestNovaStub_ControlOverHTTP(t *testing.T) {
	t.Parallel()
	stub := &notifytest.Nova{}
	ask := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		stub.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	for body, want := range map[string]int{`7`: 400, `{"status":9}`: 400, `{"status":503}`: 204} {
		if status, _ := ask("POST", "/_control/faults", body); status != want {
			t.Errorf("inject the fault %s: got status %d, want %d", body, status, want)
		}
	}
	event := `{"events":[{"server_uuid":"s","name":"n","tag":"p"}]}`
	for _, want := range []int{503, 200} {
		if status, answer := ask("POST", "/os-server-external-events", event); status != want {
			t.Errorf("send an event to the stub: got %d %s, want %d", status, answer, want)
		}
	}
	if _, events := ask("GET", "/_control/events", ""); strings.Count(events, `"tag":"p"`) != 1 {
		t.Error(events)
	}
	if status, _ := ask("DELETE", "/_control/events", ""); status != 204 || len(stub.Events()) != 0 {
		t.Error("DELETE /_control/events: want 204 and no events left")
	}
	if status, _ := ask("POST", "/os-server-external-events", `{`); status != 400 {
		t.Error(status)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"events":[{"code":200}]}`))
	f.Add(207, []byte(`{"events":[{"code":-1},{}]}`))
	f.Add(404, []byte{0xff})
	type answer struct {
		status int
		body   []byte
	}
	answers := make(chan answer, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := <-answers
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	}))
	f.Cleanup(server.Close)
	client, err := notify.NewNova(notify.Config{URL: server.URL, Timeout: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 999 {
			t.Skip()
		}
		answers <- answer{status, body}
		codes, err := client.Send(t.Context(), []notify.Event{plugged})
		if (err == nil) != (len(codes) == 1) {
			t.Errorf(
				"send an event, random answer of Nova: got codes %v, error %v; want one code or an error",
				codes,
				err,
			)
		}
	})
}

func TestNovaSend_RenewsRejectedTokenOnce(t *testing.T) {
	t.Parallel()
	stub := &notifytest.Nova{Token: "second"}
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	var asked []string
	next := map[string]string{"": "first", "first": "second"}
	client, err := notify.NewNova(notify.Config{
		URL:     server.URL,
		Timeout: time.Hour,
		TokenSource: func(_ context.Context, rejected string) (string, error) {
			asked = append(asked, rejected)
			if token := next[rejected]; token != "" {
				return token, nil
			}
			return "", errors.New("Keystone is not available")
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	codes, err := client.Send(t.Context(), []notify.Event{plugged})

	if d := cmp.Diff([]int{200}, codes); d != "" || err != nil {
		t.Error(d, err)
	}
	if d := cmp.Diff([]string{"", "first"}, asked); d != "" {
		t.Error(d)
	}
	stub.Token = "third"
	if _, err := client.Send(t.Context(), []notify.Event{plugged}); err == nil ||
		errors.Is(err, notify.ErrRejected) {
		t.Errorf("send without a valid token: got %v, want a transient error", err)
	}
}
