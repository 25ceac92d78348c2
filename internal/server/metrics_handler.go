package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// keepMetrics is how long a metricsHandler answers with the metrics that it has gathered.
const keepMetrics = time.Second

// metricsFormat is the format of the answer to /metrics.
var metricsFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

// metricsHandler answers /metrics. Clients without a token may send any number of requests to /metrics, and
// to gather, encode and compress the metrics costs much more CPU time than another request. Therefore, the
// requests share the encoded metrics.
type metricsHandler struct{ pages *recentResult[metricsPage] }

// metricsPage is an answer to /metrics, with and without compression.
type metricsPage struct{ text, compressed []byte }

func newMetricsHandler(g prometheus.Gatherer) *metricsHandler {
	return &metricsHandler{newRecentResult(keepMetrics, func(ctx context.Context) (metricsPage, error) {
		page, err := encodeMetrics(g)
		if err != nil {
			slog.WarnContext(ctx, "metrics cannot be gathered", "error", err)
		}
		return page, err
	})}
}

// encodeMetrics gathers the metrics and encodes them.
func encodeMetrics(g prometheus.Gatherer) (metricsPage, error) {
	families, err := g.Gather()
	if err != nil {
		return metricsPage{}, err
	}
	var text, compressed bytes.Buffer
	encoder := expfmt.NewEncoder(&text, metricsFormat)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return metricsPage{}, err
		}
	}
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(text.Bytes()) // a bytes.Buffer returns no error
	_ = w.Close()
	return metricsPage{text.Bytes(), compressed.Bytes()}, nil
}

// ServeHTTP answers with all metrics in Prometheus' text format.
func (h *metricsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, err := h.pages.read(r.Context())
	if err != nil {
		writeError(w, http.StatusInternalServerError,
			"The metrics cannot be gathered. The log of the process has the reason.")
		return
	}
	header, body := w.Header(), page.text
	header.Set("Content-Type", string(metricsFormat))
	header.Add("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		header.Set("Content-Encoding", "gzip")
		body = page.compressed
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

// acceptsGzip reports whether the client accepts an answer that is compressed with gzip.
func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.TrimSpace(weight) != "q=0"
		}
	}
	return false
}
