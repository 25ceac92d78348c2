package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/internal/config"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
)

// storeConfig returns the settings of the stores. If `enforcement` is true, the store records lease
// notifications even if no webhook is configured, because the enforcement service receives them.
func storeConfig(cfg config.Config, enforcement bool) (store.Config, error) {
	if err := errors.Join(checkQuota("BERTH_QUOTA", cfg.Networking.Quota, network.QuotaResources()),
		checkQuota("BERTH_LEASE_QUOTA", cfg.Lease.Quota, lease.QuotaResources())); err != nil {
		return store.Config{}, err
	}
	var vlans network.VLANRanges
	for _, r := range cfg.Networking.VLANRanges {
		vlans = append(vlans, network.VLANRange(r))
	}
	return store.Config{
		Options: db.Options{Pooler: cfg.DatabasePooler, Answers: answerLimits(cfg.AnswerTimeout)},
		Network: portstore.Config{
			Network: networkstore.Config{
				Quota:            cfg.Networking.Quota,
				VLANs:            vlans,
				PhysicalMTU:      cfg.Networking.PhysicalMTU,
				NoDHCP:           !cfg.Networking.TraditionalDHCP,
				DefaultZones:     cfg.Networking.DefaultZones,
				DisableNewAgents: !cfg.Networking.EnableNewAgents,
				NotifyAgents:     len(cfg.RabbitMQ) > 0,
			},
			Policy:        blockPolicy(cfg.Port),
			NotifyWebhook: cfg.Port.Webhook.URL != "",
		},
		Lease: leasestore.Config{
			Limits: lease.Limits{
				CleaningTime:   cfg.Lease.CleaningTime,
				MaxDuration:    cfg.Lease.MaxDuration,
				ExemptProjects: cfg.Lease.MaxDurationExempt,
				BeforeEndLead:  cfg.Lease.BeforeEnd,
				RandomHosts:    cfg.Lease.RandomHosts,
			},
			Quota:         lease.Quota{Limits: cfg.Lease.Quota, ExemptProjects: cfg.Lease.QuotaExempt},
			Notifications: cfg.Lease.Webhook.URL != "" || enforcement,
			PoolHosts:     cfg.Nova.URL != "",
		},
	}, nil
}

// checkQuota returns an error if a setting limits a resource that has no quota.
func checkQuota(setting string, limits map[string]int64, resources []string) error {
	for name := range limits {
		if !slices.Contains(resources, name) {
			return fmt.Errorf("%s: unknown resource %q; the resources are %s",
				setting, name, strings.Join(resources, ", "))
		}
	}
	return nil
}

// answerLimits divides the time after which a database without an answer counts as hung. The probe gets the
// larger part, because the answer to the probe decides.
func answerLimits(total time.Duration) db.AnswerLimits {
	return db.AnswerLimits{ProbeAfter: total / 3, ProbeTimeout: total - total/3}
}

// blockPolicy returns how long a port waits for each provisioning block, and whether the port's status
// becomes ERROR afterwards.
func blockPolicy(c config.Port) network.BlockPolicy {
	p := network.BlockPolicy{}
	for entity, limit := range c.Deadlines {
		p[entity] = network.BlockTimeout{Limit: limit, Fatal: c.OverdueIsError}
	}
	return p
}

// startNudgingWaitingPorts applies changed settings to ports that already wait: to ports with a provisioning
// block whose deadline differs from the configured one, and to ports with a DHCP block although DHCP is
// disabled. If this changes a port, the port's workflow is nudged. startNudgingWaitingPorts retries until the
// database answers, and then closes the returned channel. If the process does not have the role temporal, it
// only closes the channel.
func (a *App) startNudgingWaitingPorts(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !a.hasRole(config.Temporal) {
			return
		}
		failures := failureLog{message: "applying the settings of provisioning blocks to waiting ports failed; retrying"}
		for {
			err := a.store.Network.ApplyBlockPolicy(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			failures.add(ctx, err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return done
}
