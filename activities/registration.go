package activities

import "go.temporal.io/sdk/activity"

// Registered names of the activities. Workflows call activities by their registered names. The registered name of an activity must never
// change, because the histories of running workflows contain it; only the Go method may be renamed.
const (
	ApplyPortReports     = "SettlePort"
	NotifyNova           = "NotifyNova"
	NotifyAgents         = "TellAgents"
	ReadLease            = "Lease"
	AdvanceLeases        = "AdvanceLeases"
	BeginLease           = "BeginLease"
	FinishLease          = "FinishLease"
	ProvisionReservation = "WireReservation"
	ReleaseReservation   = "UnwireReservation"
	RunBeforeEndAction   = "PrepareEnd"
	NotifyWebhook        = "TellLease"
	SyncFreepoolHost     = "PoolHost"
	TryEntry             = "TryEntry"
	MirrorEntry          = "MirrorEntry"
	StepRun              = "StepRun"
	Sweep                = "Sweep"
	StartDueRuns         = "WatchController"
	HealReservations     = "WatchHosts"
)

// Functions returns the activity functions by registered name.
func (a *Activities) Functions() map[string]any {
	return map[string]any{
		ApplyPortReports:     a.ApplyPortReports,
		NotifyNova:           a.NotifyNova,
		NotifyAgents:         a.NotifyAgents,
		ReadLease:            a.ReadLease,
		AdvanceLeases:        a.AdvanceLeases,
		BeginLease:           a.BeginLease,
		FinishLease:          a.FinishLease,
		ProvisionReservation: a.ProvisionReservation,
		ReleaseReservation:   a.ReleaseReservation,
		RunBeforeEndAction:   a.RunBeforeEndAction,
		NotifyWebhook:        a.NotifyWebhook,
		SyncFreepoolHost:     a.SyncFreepoolHost,
		TryEntry:             a.TryEntry,
		MirrorEntry:          a.MirrorEntry,
		StepRun:              a.StepRun,
		Sweep:                a.Sweep,
		StartDueRuns:         a.StartDueRuns,
		HealReservations:     a.HealReservations,
	}
}

// Registry is a Temporal worker, or a test environment, with which activities are registered.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register registers the activity functions under the given names.
func Register(r Registry, functions map[string]any) {
	for name, function := range functions {
		r.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: name})
	}
}
