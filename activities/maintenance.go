package activities

import (
	"context"
	"time"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/outbox"
)

// The activities of the maintenance below store when they were last completed, so that a part of the
// maintenance that no longer runs is noticed.

func (a *Activities) recordedSweep(ctx context.Context, since time.Time) (contract.SweepResult, error) {
	result, err := a.Sweep(ctx, since)
	if err == nil && len(result.Failures) == 0 {
		if failed := a.Store.Outbox.CompleteMaintenance(ctx, outbox.SweepPart); failed != nil {
			result.Failures = []string{failed.Error()}
		}
	}
	return result, err
}

func (a *Activities) recordedStartDueRuns(ctx context.Context) error {
	if err := a.StartDueRuns(ctx); err != nil {
		return err
	}
	return a.Store.Outbox.CompleteMaintenance(ctx, outbox.ControllerPart)
}

// recordedHealReservations also stores whether the hosts are expected to be read, because only the option
// MonitorHosts makes their states matter.
func (a *Activities) recordedHealReservations(ctx context.Context) error {
	monitors := a.Hypervisors != nil && a.MonitorHosts
	if err := a.Store.Outbox.ExpectMaintenance(ctx, outbox.HostsPart, monitors); err != nil {
		return err
	}
	if err := a.HealReservations(ctx); err != nil {
		return err
	}
	return a.Store.Outbox.CompleteMaintenance(ctx, outbox.HealingPart)
}

// recordedHypervisors stores when it has last read the hypervisors.
type recordedHypervisors struct {
	HypervisorLister
	store *outbox.Store
}

// Hypervisors implements HypervisorLister.
func (r recordedHypervisors) Hypervisors(ctx context.Context) ([]lease.Hypervisor, error) {
	all, err := r.HypervisorLister.Hypervisors(ctx)
	if err == nil {
		err = r.store.CompleteMaintenance(ctx, outbox.HostsPart)
	}
	return all, err
}
