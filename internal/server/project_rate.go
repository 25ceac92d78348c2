package server

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/osapi"
	"berth/internal/config"
)

// newRates returns the limits for the requests of each project and of the agents of each host, and registers
// their metric. A limit is nil if its setting is 0, and with BERTH_AUTH=noauth, because then a caller chooses
// the project of each request, and agents have no tokens.
func (a *App) newRates() (*osapi.ProjectRate, *osapi.HostRate) {
	projects, hosts := a.cfg.ProjectRate, a.cfg.AgentRate
	if a.cfg.Auth == config.Noauth || projects.PerSecond == 0 && hosts.PerSecond == 0 {
		return nil, nil
	}
	throttled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_http_throttled_total",
		Help: "HTTP requests refused because a project exceeds BERTH_PROJECT_RATE or a host exceeds BERTH_AGENT_RATE, by API.",
	}, []string{"api"})
	a.registry.MustRegister(throttled)
	refused := func(prefix string) { throttled.WithLabelValues(strings.TrimPrefix(prefix, "/")).Inc() }
	var perProject *osapi.ProjectRate
	if projects.PerSecond > 0 {
		perProject = &osapi.ProjectRate{
			PerSecond: projects.PerSecond,
			Burst:     projects.Burst,
			Now:       time.Now,
			Refused:   refused,
		}
	}
	var perHost *osapi.HostRate
	if hosts.PerSecond > 0 {
		perHost = &osapi.HostRate{
			PerSecond: hosts.PerSecond,
			Burst:     hosts.Burst,
			Now:       time.Now,
			Refused:   refused,
		}
	}
	return perProject, perHost
}
