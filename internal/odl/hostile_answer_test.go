package odl_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"berth/internal/odl"
)

// setCookies sets cookies of 1 KiB with new names in each answer, and the session cookie `last` with the
// number of the request.
type setCookies struct {
	path    string
	answers int
	sent    string // the cookies of the last request
}

func (c *setCookies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.sent = r.Header.Get("Cookie")
	c.answers++
	for i := range 20 {
		w.Header().Add("Set-Cookie", fmt.Sprintf("c%d-%d=%s; Path=%s", c.answers, i, strings.Repeat("x", 1<<10), c.path))
	}
	w.Header().Add("Set-Cookie", fmt.Sprintf("last=%d; Path=/", c.answers))
	_, _ = io.WriteString(w, "{}")
}

func TestCookies_AreBoundedAndKeepTheNewestSession(t *testing.T) {
	t.Parallel()
	controller := &setCookies{path: "/"}
	server := httptest.NewServer(controller)
	t.Cleanup(server.Close)
	client := newClient(t, odl.Config{URL: server.URL})
	for n := range 20 {
		if a := send(t, client, "GET", "/networks", ""); a.Status != 200 {
			t.Fatalf("request %d: got status %d, failure %q %s", n, a.Status, a.Failure, a.Detail)
		}
		if n > 0 && !strings.Contains(controller.sent+";", fmt.Sprintf("last=%d;", n)) {
			t.Errorf("request %d does not have the session cookie of the answer before", n)
		}
		if len(controller.sent) > 70<<10 {
			t.Fatalf("request %d: got %d bytes of cookies, want at most 64 KiB", n, len(controller.sent))
		}
	}
}

func TestOperationalData_ListsThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("x", 1<<20)
	serve := func(envelope, list, object string) *odl.Client {
		return newListClient(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{%q:{%q:[{"service-provider-feature":"first"}`, envelope, list)
			for i := range 200 {
				if _, err := fmt.Fprintf(w, ","+object, i, value); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `]}}`)
		})
	}
	c := serve("hostconfigs", "hostconfig", `{"host-id":"%d","host-type":"ODL L2","config":%q}`)
	if hosts, err := c.HostConfigs(t.Context(), odl.HostConfigsPath); err == nil {
		t.Errorf("read 200 MiB of host configurations: got %d and no error", len(hosts))
	}
	c = serve("features", "feature", `{"service-provider-feature":"%d","configuration":%q}`)
	if features, err := c.Features(t.Context()); err == nil {
		t.Errorf("read 200 MiB of features: got %d and no error", len(features))
	}
}

func TestWatch_LargeMessageIsOneEvent(t *testing.T) {
	t.Parallel()
	const message = `{"notification":{"data-changed-notification":{"data-change-event":[{}%s]}}}`
	c := newListClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for _, events := range []int{2, 1 << 20} {
				text := fmt.Sprintf(message, strings.Repeat(",{}", events-1))
				if err := conn.Write(r.Context(), websocket.MessageText, []byte(text)); err != nil {
					t.Error(err)
				}
			}
			_ = conn.Close(websocket.StatusNormalClosure, "")
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, `{"output":{"stream-name":"a/b=c"}}`)
		default:
			w.Header().Set("Location", "ws://"+r.Host+"/stream")
		}
	})
	events := 0
	_ = c.Watch(t.Context(), odl.TopicPorts, func() {}, func(odl.ChangeEvent) { events++ })
	if events != 3 {
		t.Errorf("messages with 2 and with %d events: got %d events, want 2 and 1", 1<<20, events)
	}
}
