package server

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/osapi"
	"berth/internal/config"
)

// newProjectRate returns the limit for the requests of each project and registers its metric. newProjectRate returns nil if
// BERTH_PROJECT_RATE is 0, and with BERTH_AUTH=noauth, because then a caller chooses the project of each request.
func (a *App) newProjectRate() *osapi.ProjectRate {
	if a.cfg.ProjectRate.PerSecond == 0 || a.cfg.Auth == config.Noauth {
		return nil
	}
	throttled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_http_throttled_total",
		Help: "HTTP requests refused because the project exceeds BERTH_PROJECT_RATE, by API.",
	}, []string{"api"})
	a.registry.MustRegister(throttled)
	return &osapi.ProjectRate{PerSecond: a.cfg.ProjectRate.PerSecond, Burst: a.cfg.ProjectRate.Burst, Now: time.Now,
		Refused: func(prefix string) { throttled.WithLabelValues(strings.TrimPrefix(prefix, "/")).Inc() }}
}
