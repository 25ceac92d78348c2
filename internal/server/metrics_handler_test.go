package server_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"berth/internal/server"
	"berth/internal/server/servertest"
)

// heldCollector is a collector of one metric, which waits in each gathering until the test releases it.
type heldCollector struct {
	prometheus.Gauge
	heldCheck
}

// Collect implements prometheus.Collector.
func (c *heldCollector) Collect(values chan<- prometheus.Metric) {
	c.begun.Add(1)
	<-c.release
	c.Gauge.Collect(values)
}

// readMetrics requests the metrics with an encoding, and returns the status, the encoding and the text.
func readMetrics(t *testing.T, url, accepted string) (code int, encoding, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	r.Header.Set("Accept-Encoding", accepted) // then the client does not decompress the answer itself
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	defer func() { _ = answer.Body.Close() }()
	body := io.Reader(answer.Body)
	encoding = answer.Header.Get("Content-Encoding")
	if encoding == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			t.Error(err)
			return 0, "", ""
		}
	}
	content, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, encoding, string(content)
}

func TestMetrics_ConcurrentRequestsShareOneGathering(t *testing.T) {
	t.Parallel()
	collector := &heldCollector{
		Gauge:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "held", Help: "A metric."}),
		heldCheck: heldCheck{release: make(chan struct{})},
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	handler, waiting := server.NewMetricsHandler(unreachable, registry)
	url := serveProbe(t, handler)
	const clients = 100
	const want = "# HELP held A metric.\n# TYPE held gauge\nheld 0\n"
	var requests sync.WaitGroup
	request := func(accepted, encoding string) {
		if code, got, text := readMetrics(t, url, accepted); code != http.StatusOK || got != encoding ||
			text != want {
			t.Errorf("one of many requests that accepts %q: got %d, encoding %q, %q; want 200, %q, %q",
				accepted, code, got, text, encoding, want)
		}
	}
	requests.Go(func() { request("", "") })
	servertest.Await(t, "a gathering runs", func() bool { return collector.begun.Load() == 1 })
	for i := range clients - 1 {
		requests.Go(func() {
			if i%2 == 0 {
				request("deflate, gzip;q=0.5", "gzip")
			} else {
				request("gzip;q=0, deflate", "")
			}
		})
	}
	servertest.Await(t, "all other requests wait",
		func() bool { return collector.begun.Load() > 1 || waiting() == clients-1 })

	close(collector.release)
	requests.Wait()

	request("", "")
	if n := collector.begun.Load(); n != 1 {
		t.Errorf("gatherings for %d requests: got %d, want 1", clients+1, n)
	}
}

func TestMetrics_AreGatheredAgainAfterAFailureAndWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	var gatherings atomic.Int32
	handler, _ := server.NewMetricsHandler(time.Nanosecond, prometheus.GathererFunc(
		func() ([]*dto.MetricFamily, error) {
			if gatherings.Add(1) == 1 {
				return nil, errors.New("the secret reason")
			}
			return nil, nil
		}))
	url := serveProbe(t, handler)
	for i, want := range []int{http.StatusInternalServerError, http.StatusOK, http.StatusOK} {
		code, _, text := readMetrics(t, url, "")
		if code != want || strings.Contains(text, "secret") {
			t.Errorf("request %d: got %d %q, want %d", i+1, code, text, want)
		}
	}
	if n := gatherings.Load(); n != 3 {
		t.Errorf("gatherings for requests after a failure and when the metrics are old: got %d, want 3", n)
	}
}
