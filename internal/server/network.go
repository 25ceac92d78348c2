package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"berth/internal/config"
	"berth/internal/network"
)

// governNetworks tells the store what the operator wishes of networks.
func (a *App) governNetworks(cfg config.Config) error {
	a.store.Govern(blockPolicy(cfg.Port))
	for name := range cfg.Networking.Quota {
		if !slices.Contains(network.Limited(), name) {
			return fmt.Errorf("BERTH_QUOTA: %q is none of %s", name, strings.Join(network.Limited(), ", "))
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

// blockPolicy is what a port's blocks may cost in time.
func blockPolicy(c config.Port) network.Policy {
	p := network.Policy{}
	for entity, limit := range c.Deadlines {
		p[entity] = network.Patience{Limit: limit, Fatal: c.OverdueIsError}
	}
	return p
}

// lookAgain has ports wait as the operator wishes now, who have waited since before that was another way, as soon as the database is there.
func (a *App) lookAgain(ctx context.Context) (looked <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !a.has(config.Temporal) {
			return
		}
		for {
			err := a.store.LookAgain(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			slog.WarnContext(ctx, "cannot look at waiting ports yet", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return done
}
