// Package activities contains the activities of all workflows. The activities access PostgreSQL, the
// OpenDaylight controller, Nova, Neutron, RabbitMQ and the webhook for lease notifications. Each activity
// does one thing, is idempotent and takes little time. Each activity that changes a row first checks the
// row's state or version (the fence), so that a repeated or late call to the activity changes nothing.
package activities

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"berth/internal/coalesce"
	"berth/internal/contract"
	"berth/internal/delivery"
	"berth/internal/journal"
	"berth/internal/notify"
	"berth/internal/store"
	"berth/internal/store/inventorystore"
)

// Options are the services and settings of the activities.
type Options struct {
	Store *store.Store
	ODL   Controller
	// Notes, if set, delivers the notes (outbox rows) with which an activity wakes workflows. If the option
	// Notes is nil, a relay delivers the notes of activities.
	Notes NoteDeliverer
	Nova  delivery.EventSender
	// Enforcement, if set, notifies the external enforcement service at BERTH_LEASE_ENFORCEMENT_URL of the
	// end of leases.
	Enforcement *notify.Enforcement
	// Hypervisors, if set, lists Nova's hypervisors with their compute services and states.
	Hypervisors HypervisorLister
	// MonitorHosts makes berth replace a host in its leases while Nova reports the host as down or disabled.
	MonitorHosts bool
	// HealingWindow limits the healing of reservations to those that start at most this duration from now; 0:
	// no limit.
	HealingWindow time.Duration
	// Cloud provisions reservations in Nova and Neutron. If Cloud is nil, neither Nova nor Neutron is
	// configured for leases.
	Cloud Cloud
	// CloudRetryTime is how long a lease's workflow retries the failed Nova and Neutron calls of a
	// reservation; 0: the default of the workflow.
	CloudRetryTime time.Duration
	// SnapshotByDefault makes "snapshot" the action before the end of reservations that request "default".
	SnapshotByDefault bool
	// Webhook receives the notifications of leases.
	Webhook NotificationSender
	// ProvisioningWebhook receives the notifications that nothing blocks a port or a trunk any more.
	ProvisioningWebhook NotificationSender
	Agents              delivery.AgentPublisher
	// HistoryRetention is the maximum age and number of the entries in the inventory's generation history,
	// which records every change of a generation of a consumer or provider.
	HistoryRetention inventorystore.Retention
	// JournalRetention is how long completed journal entries are kept; 0: forever.
	JournalRetention time.Duration
	// FullSyncInterval is the time from the start of the last full sync to the next scheduled full sync; 0:
	// no scheduled full syncs.
	FullSyncInterval time.Duration
	// AuditInterval is the time from the start of the last audit to the next scheduled audit; 0: no scheduled
	// audits.
	AuditInterval time.Duration
	// AuditRepair makes a scheduled audit that finds missing or different objects start a full sync.
	AuditRepair bool
	// MaxEntryFailures is the number of failures after which a journal entry becomes failed; 0:
	// journal.DefaultMaxFailures.
	MaxEntryFailures int
	// RequireSignatures makes berth refuse each report to the workflow of a port that is not signed with a
	// registered key of the report's host.
	RequireSignatures bool
	// HideProjects means that workflows get no search attribute with the project of their object.
	HideProjects bool
	// OnRefusal, if set, is called for every refused report.
	OnRefusal func(contract.Refusal)
	// OnAttempt, if set, is called after every attempt to send a journal entry to the controller.
	OnAttempt func(journal.Entry, journal.Outcome)
	// Timeouts are the time limits within the activities.
	Timeouts Timeouts
}

// NoteDeliverer delivers notes that the caller has claimed.
type NoteDeliverer interface {
	FreeDeliveries() int // number of notes that the caller may claim
	DeliverClaimed(notes []contract.Note)
}

// Activities are the activities of every task queue.
type Activities struct {
	Options
	leaseRounds coalesce.Loop // performs the due steps (such as start and end) of leases
	leases      *leaseLoader
	drainLock   sync.Mutex // held while an activity drains the journal backlog
	accepted    acceptedWrite
	healing     healingRound
	// notifications that are sent to the two webhooks at the moment
	leaseSends, provisioningSends sendSlots
}

// New returns the activities.
func New(o Options) *Activities {
	a := &Activities{
		Options:           o,
		leaseSends:        make(sendSlots, MaxWebhookSends),
		provisioningSends: make(sendSlots, MaxWebhookSends),
	}
	if o.MonitorHosts && o.Hypervisors != nil {
		a.Hypervisors = recordedHypervisors{o.Hypervisors, o.Store.Outbox}
	}
	a.Timeouts = o.Timeouts.withDefaults()
	a.MaxEntryFailures = cmp.Or(a.MaxEntryFailures, journal.DefaultMaxFailures)
	a.leases = newLeaseLoader(a.readLeases, a.readProjects, a.Timeouts.LoadLeases)
	return a
}

// HeartbeatInterval is the time between two heartbeats of a regular activity.
const HeartbeatInterval = time.Second

// startHeartbeat makes the activity send heartbeats until stop is called, so that the Temporal server notices
// the death of the process within seconds.
func startHeartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(HeartbeatInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() { close(ended) }
}

// parseUUID parses a workflow's key as a UUID. A key that is not a UUID belongs to no row, so Temporal does
// not retry the activity after this error.
func parseUUID(key string) (uuid.UUID, error) {
	id, err := uuid.Parse(key)
	if err != nil {
		return id, invalid(fmt.Errorf("key %q is not a UUID", key))
	}
	return id, nil
}

// parseSequence parses a workflow's key as the sequence number of a journal entry.
func parseSequence(key string) (int64, error) {
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return 0, invalid(fmt.Errorf("key %q is not a sequence number", key))
	}
	return n, nil
}
