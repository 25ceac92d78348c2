package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"berth/internal/server"
	"berth/internal/server/servertest"
)

// scrape returns the text that the App serves at /metrics.
func scrape(t *testing.T, a *server.App) string {
	t.Helper()
	r, err := http.Get("http://" + a.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// send sends a request as an administrator and returns the status.
func send(t *testing.T, a *server.App, method, path, body string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method,
		"http://"+a.Address()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestMetrics_FollowConventionsAndCoverEveryPart scrapes a process that has done some work, and passes the
// text to `promtool check metrics`.
func TestMetrics_FollowConventionsAndCoverEveryPart(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,relay,temporal")
	servertest.AwaitReady(t, a)
	if code := send(t, a, "POST", "/networking/v2.0/networks", `{"network": {"name": "blue"}}`); code != 201 {
		t.Fatalf("create a network: got the status %d, want 201", code)
	}
	servertest.Await(t, "activities and calls to Temporal are measured", func() bool {
		text := scrape(t, a)
		return strings.Contains(text, "\nberth_activity_attempts_total{") &&
			strings.Contains(text, "\nberth_relay_call_duration_seconds_count{outcome=\"accepted\"}")
	})

	text := scrape(t, a)
	for _, name := range []string{"go_goroutines", "process_open_fds", "temporal_request_total", `temporal_request_latency_seconds_bucket{`, "berth_notes_delivered_total", "berth_note_oldest_seconds ",
		"berth_notes_pending ", `berth_port_blocks{age="over_10m",entity="DHCP"} 0`, `berth_deliveries_pending{kind="nova"} 0`, `berth_agents{state="down"} 0`,
		`berth_lease_lateness_seconds_count{step="end"} 0`, `berth_db_connections{pool="general",state="used"}`, `berth_db_transaction_retries_total{reason="deadlock"}`} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("scrape /metrics: want the metric %s, but the response does not contain it", name)
		}
	}
	for _, bucket := range []string{`le="0.001"`, `le="0.5"`} {
		if !strings.Contains(text, bucket) {
			t.Errorf("buckets of Temporal's durations: want %s, but the response does not contain it", bucket)
		}
	}
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v; it prints\n%s", err, out)
	}
}

// TestMetrics_RoutesAndConflictsHaveNoUnboundedLabels sends requests with values in the path and with an
// unknown method.
func TestMetrics_RoutesAndConflictsHaveNoUnboundedLabels(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api")
	provider := "/placement/resource_providers/0b3ee4ea-5a4b-4b64-8d38-0e0bd6a7a0c1"
	if code := send(t, a, "PUT", "/placement/traits/CUSTOM_A", "", "OpenStack-API-Version", "placement 1.39"); code != 201 {
		t.Fatalf("create a trait: got the status %d, want 201", code)
	}
	if code := send(t, a, "POST", "/placement/resource_providers", `{"name": "a", "uuid": "0b3ee4ea-5a4b-4b64-8d38-0e0bd6a7a0c1"}`); code != 201 {
		t.Fatalf("create a provider: got the status %d, want 201", code)
	}
	for path, want := range map[string]int{"/networking/v2.0/ports/1": 404, "/networking/v2.0/ports/2": 404, "/networking/nothing/3": 404} {
		if code := send(t, a, "GET", path, ""); code != want {
			t.Errorf("GET %s: got the status %d, want %d", path, code, want)
		}
	}
	if code := send(t, a, "SPLIT", "/networking/v2.0/ports", ""); code != 405 {
		t.Errorf("SPLIT /networking/v2.0/ports: got the status %d, want 405", code)
	}
	stale := `{"resource_provider_generation": 7, "traits": []}`
	if code := send(t, a, "PUT", provider+"/traits", stale, "OpenStack-API-Version", "placement 1.39"); code != 409 {
		t.Errorf("replace the traits with an old generation: got the status %d, want 409", code)
	}
	text := scrape(t, a)
	for _, want := range []string{
		`berth_http_route_requests_total{api="networking",code="404",method="GET",route="/v2.0/ports/{id}"} 2`,
		`berth_http_route_requests_total{api="networking",code="404",method="GET",route="unmatched"} 1`,
		`berth_http_route_requests_total{api="networking",code="405",method="other",route="unmatched"} 1`,
		`berth_http_route_duration_seconds_count{api="networking",method="GET",route="/v2.0/ports/{id}"} 2`,
		`berth_http_conflicts_total{api="placement",type="placement.concurrent_update"} 1`,
		`berth_http_requests_in_flight{api="placement"} 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("scrape /metrics: want the line %s, but the response does not contain it", want)
		}
	}
	if strings.Contains(text, "ports/1") || strings.Contains(text, "0b3ee4ea") {
		t.Error("scrape /metrics: a label contains a value of a path, want only routes")
	}
	if t.Failed() {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "berth_http_route_requests") ||
				strings.HasPrefix(line, "berth_http_conf") {
				t.Log(line)
			}
		}
	}
}

// counter is a collector that counts how often it was read.
type counter struct{ reads int }

func (c *counter) Describe(all chan<- *prometheus.Desc) {
	all <- prometheus.NewDesc("reads", "Reads.", nil, nil)
}
func (c *counter) Collect(all chan<- prometheus.Metric) {
	c.reads++
	all <- prometheus.MustNewConstMetric(prometheus.NewDesc("reads", "Reads.", nil, nil), prometheus.GaugeValue, float64(c.reads))
}

func TestCachedCollector_ReadsOnceWithinTheCacheTime(t *testing.T) {
	t.Parallel()
	c := &counter{}
	cached, expire := server.NewCachedCollector(c)
	for range 3 {
		if got := testutil.ToFloat64(cached); got != 1 {
			t.Errorf("value within the cache time: got %v, want the first one", got)
		}
	}
	expire(time.Now().Add(-time.Second))
	if got := testutil.ToFloat64(cached); got != 2 {
		t.Errorf("value after the cache time: got %v, want a new one", got)
	}
}

func TestServiceMetrics_CountRequestsByServiceAndStatus(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	url := servertest.Serve(t,
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	c := http.Client{Transport: server.MeasureService(registry, "nova")(http.DefaultTransport)}
	for _, to := range []string{url, url, "http://127.0.0.1:1"} {
		if r, err := c.Post(to, "", nil); err == nil {
			_ = r.Body.Close()
		}
	}
	want := `
# HELP berth_service_requests_total HTTP requests of this process to other services, by service, method and status code; the code ` + "`none`" + ` means that no answer came.
# TYPE berth_service_requests_total counter
berth_service_requests_total{code="503",method="POST",service="nova"} 2
berth_service_requests_total{code="none",method="POST",service="nova"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "berth_service_requests_total"); err != nil {
		t.Error(fmt.Errorf("requests to a service: %w", err))
	}
}
