package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"berth/internal/server/servertest"
)

func TestMetrics_OwnAndSDKMetricsExported(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,relay,temporal")
	servertest.AwaitReady(t, a)

	r, err := http.Get("http://" + a.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"go_goroutines", "process_open_fds", "temporal_request_total", "berth_notes_delivered_total"} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("scrape /metrics: want the metric %s, but the response does not contain it", name)
		}
	}
}
