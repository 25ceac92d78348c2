package server_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/identity/keystonetest"
	"berth/internal/odl/odltest"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

var (
	usedMetric   = regexp.MustCompile(`\b(?:berth|temporal|process|go)_[a-z_]+[a-z]\b`)
	seriesSuffix = regexp.MustCompile(`_(?:bucket|count|sum)$`)
)

// namedMetrics returns the metrics that the alert rules and the dashboard name.
func namedMetrics(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, file := range []string{"../../deploy/monitoring/alerts.yaml", "../../deploy/monitoring/dashboard.json"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range usedMetric.FindAllString(string(raw), -1) {
			all = append(all, seriesSuffix.ReplaceAllString(name, ""))
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 40 {
		t.Fatalf("read the names of the metrics: got %d, want at least 40", len(all))
	}
	return all
}

// startEveryRole starts two processes that together have every role and every kind of metrics: one with TLS,
// Keystone and RabbitMQ, which does not answer, and one with a controller.
func startEveryRole(t *testing.T, ca authority) (secured, others *server.App) {
	t.Helper()
	keystone, files := keystonetest.New(t), newTLSFiles(t, ca, "server")
	secured = servertest.StartApp(
		t,
		"api,rpc",
		append(
			files.settings(),
			"BERTH_AUTH=keystone",
			"OS_AUTH_URL="+keystone.URL,
			"OS_CACERT="+files.cert,
			"OS_USERNAME=berth",
			"OS_PASSWORD=secret",
			"OS_PROJECT_NAME=service",
			"BERTH_RABBITMQ_URL=amqp://berth:secret@127.0.0.1:1/",
		)...)
	others = servertest.StartApp(
		t,
		"api,relay,temporal",
		"BERTH_ODL_URL="+servertest.Serve(t, odltest.New())+odltest.BasePath,
		"BERTH_RABBITMQ_URL=amqp://berth:secret@127.0.0.1:1/",
	)
	return secured, others
}

// TestMonitoring_NamedMetricsExistInAScrape starts processes with every role, lets them do some work, and
// searches their scrapes for the metrics that the alerts and the dashboard name.
func TestMonitoring_NamedMetricsExistInAScrape(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	secured, a := startEveryRole(t, ca)
	if code := send(t, a, http.MethodPost, "/networking/v2.0/networks", `{"network": {"name": "blue"}}`); code != 201 {
		t.Fatalf("create a network: got the status %d, want 201", code)
	}
	if code := send(t, a, http.MethodPost, "/networking/v2.0/networks", `{"network": {"name": "red", "port_security_enabled": 7}}`); code != 400 {
		t.Errorf("create a network with an invalid attribute: got the status %d, want 400", code)
	}
	provider := `{"name": "a", "uuid": "0b3ee4ea-5a4b-4b64-8d38-0e0bd6a7a0c1"}`
	for _, want := range []int{201, 409} {
		if code := send(t, a, http.MethodPost, "/placement/resource_providers", provider); code != want {
			t.Errorf("create a provider: got the status %d, want %d", code, want)
		}
	}
	if code := send(t, a, http.MethodPost, "/journal/v1/runs", `{"kind": "audit"}`); code >= 300 {
		t.Errorf("start an audit: got the status %d, want a success", code)
	}
	named := namedMetrics(t)
	defer func() {
		for _, name := range named {
			t.Errorf(
				"the alerts or the dashboard name the metric %s, but no process exports it",
				name,
			)
		}
	}()
	servertest.Await(t, "the processes export every named metric", func() bool {
		_, other := get(t, ca.client(), secured.URL()+"/metrics")
		text := scrape(t, a) + other
		named = slices.DeleteFunc(named,
			func(name string) bool { return strings.Contains(text, "\n# TYPE "+name+" ") })
		return len(named) == 0
	})
}
