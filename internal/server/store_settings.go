package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"berth/internal/config"
	"berth/internal/lease"
	"berth/internal/network"
)

// configureStore gives the store the operator's settings.
func (a *App) configureStore() error {
	cfg := a.cfg
	if err := a.configureNetworks(cfg); err != nil {
		return err
	}
	a.store.Limit(lease.Limits{Cleaning: cfg.Lease.CleaningTime, Longest: cfg.Lease.MaxDuration, Exempt: cfg.Lease.MaxDurationExempt,
		Lead: cfg.Lease.BeforeEnd, Shuffled: cfg.Lease.RandomHosts})
	if cfg.Lease.Webhook.URL != "" || a.enforcement != nil {
		a.store.Tell()
	}
	if cfg.Nova.URL != "" {
		a.store.Pool()
	}
	if len(cfg.RabbitMQ) > 0 {
		a.store.Announce()
	}
	return nil
}

// configureNetworks gives the store the settings of networks, ports and agents.
func (a *App) configureNetworks(cfg config.Config) error {
	a.store.Govern(blockPolicy(cfg.Port))
	for name := range cfg.Networking.Quota {
		if !slices.Contains(network.Limited(), name) {
			return fmt.Errorf("BERTH_QUOTA: unknown resource %q; use %s", name, strings.Join(network.Limited(), ", "))
		}
	}
	a.store.Allow(cfg.Networking.Quota)
	if !cfg.Networking.EnableNewAgents {
		a.store.Doubt()
	}
	if !cfg.Networking.TraditionalDHCP {
		a.store.ForgoDHCP()
	}
	return nil
}

// blockPolicy returns how long a port waits for each provisioning block, and whether the port fails afterwards.
func blockPolicy(c config.Port) network.Policy {
	p := network.Policy{}
	for entity, limit := range c.Deadlines {
		p[entity] = network.Patience{Limit: limit, Fatal: c.OverdueIsError}
	}
	return p
}

// startNudgingWaitingPorts nudges the ports that wait since before the deadlines of blocks changed, so that the new deadlines apply to them.
// It retries until the database answers, and closes the channel when it is done.
func (a *App) startNudgingWaitingPorts(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !a.hasRole(config.Temporal) {
			return
		}
		for {
			err := a.store.LookAgain(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			slog.WarnContext(ctx, "applying block deadlines to waiting ports failed; retrying", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return done
}
