package activities

import "go.temporal.io/sdk/activity"

// Registered names of the activities: the names of their methods. The registered name of an activity must
// never change, because the histories of running workflows contain it; if a method is renamed, it keeps its
// registered name.
const (
	ApplyPortReports     = "ApplyPortReports"
	NotifyNova           = "NotifyNova"
	NotifyAgents         = "NotifyAgents"
	ReadLease            = "ReadLease"
	AdvanceLeases        = "AdvanceLeases"
	BeginLease           = "BeginLease"
	FinishLease          = "FinishLease"
	ProvisionReservation = "ProvisionReservation"
	ReleaseReservation   = "ReleaseReservation"
	RunBeforeEndAction   = "RunBeforeEndAction"
	NotifyWebhook        = "NotifyWebhook"
	SyncFreepoolHost     = "SyncFreepoolHost"
	TryEntry             = "TryEntry"
	MirrorEntry          = "MirrorEntry"
	StepRun              = "StepRun"
	Sweep                = "Sweep"
	StartDueRuns         = "StartDueRuns"
	HealReservations     = "HealReservations"
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
		Sweep:                a.recordedSweep,
		StartDueRuns:         a.recordedStartDueRuns,
		HealReservations:     a.recordedHealReservations,
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
