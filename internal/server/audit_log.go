package server

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/config"
	"berth/internal/store/auditstore"
)

// auditLog returns the audit log of the APIs, or nil with BERTH_AUDIT=off.
func (a *App) auditLog() *auditstore.Store {
	if !a.cfg.Audit.Enabled {
		return nil
	}
	return a.store.Audit
}

// startAuditLog starts the work on the audit log. A process with the role api writes the requests that it has
// refused. A process with the role relay seals the records of all processes, and deletes the records that are
// older than the retention. Call stop after the HTTP server has stopped: stop writes the last refused
// requests.
func (a *App) startAuditLog(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wait sync.WaitGroup
	if a.hasRole(config.API) {
		wait.Go(func() { a.store.Audit.WriteDenials(ctx) })
	}
	if a.hasRole(config.Relay) {
		wait.Go(func() { a.store.Audit.Run(ctx, a.cfg.Audit.Retention) })
	}
	return func() {
		cancel()
		wait.Wait()
	}
}

// newAuditLogCollector returns the collector of the metrics of the audit log.
func newAuditLogCollector(s *auditstore.Store) prometheus.Collector {
	sealed := newGauge("berth_audit_records_sealed",
		"Records that berth has sealed in the hash chain of the audit log since the log began.")
	waiting := newGauge("berth_audit_records_waiting",
		"Records of the audit log that are committed, but not yet sealed in the hash chain. At most 10,000 records are counted.")
	return &queryCollector{
		"audit log",
		[]*prometheus.Desc{sealed, waiting},
		func(ctx context.Context, send func(*prometheus.Desc, float64, ...string)) error {
			state, err := s.State(ctx)
			if err != nil {
				return err
			}
			send(sealed, float64(state.Sealed))
			send(waiting, float64(state.Waiting))
			return nil
		},
	}
}

// newOmittedDenialsCounter returns the metric that counts refused requests without a record.
func newOmittedDenialsCounter(s *auditstore.Store) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "berth_audit_denials_omitted_total",
		Help: "Refused requests (403) that this process has only counted in the audit log, because too many refused requests waited to be written.",
	}, func() float64 { return float64(s.OmittedDenials()) })
}
