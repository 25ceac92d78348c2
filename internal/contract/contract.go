// Package contract holds everything that crosses Temporal: names, IDs, task queues and payloads.
// Whoever speaks to a workflow (relay, worker, starter, agents' tools) finds the whole wire on this page.
// It imports nothing of ours and no SDK, so that every room may import it.
package contract

import (
	"strings"
	"time"
)

// Workflow types.
const (
	Port         = "Port"
	Lease        = "Lease"
	JournalEntry = "JournalEntry"
	Maintenance  = "Maintenance"
	Announce     = "Announce" // brings out what agents are told about a network
	Webhook      = "Webhook"  // brings out what others are told about a lease
	Pool         = "Pool"     // brings a host into the cloud's pool of those that can be leased, or out of it
	// FullSync, Recovery, Audit and Repair bring controller and rows together. There is one workflow of each at most.
	FullSync = "FullSync"
	Recovery = "Recovery"
	Audit    = "Audit"
	Repair   = "Repair"
)

// Entities are the workflow types that look after a row.
var Entities = []string{Port, Announce, Lease, Webhook, Pool, JournalEntry, FullSync, Recovery, Audit, Repair}

// Task queues. One worker polls all of them by default; each can be scaled apart.
const (
	PortQueue    = "ports"
	LeaseQueue   = "leases"
	JournalQueue = "journal"
)

// Messages.
const (
	// SignalProvisioningComplete carries a Report. The update of the same name answers with a Verdict.
	SignalProvisioningComplete = "provisioning-complete"
	UpdateProvisioningComplete = "provisioning-complete"
	// SignalChanged is a nudge without content: run, and look again.
	SignalChanged = "changed"
	// QueryWhy answers with a Why, on every workflow.
	QueryWhy = "why"
)

// Search attributes. All are keywords but BerthWaitingFor, a keyword list.
const (
	AttributeStatus     = "BerthStatus"
	AttributeProject    = "BerthProject"
	AttributeHost       = "BerthHost"
	AttributeWaitingFor = "BerthWaitingFor"
	AttributeResource   = "BerthResource"
)

// SearchAttributes names every search attribute with its type as the temporal CLI spells it.
var SearchAttributes = []struct{ Name, Type string }{
	{AttributeStatus, "Keyword"},
	{AttributeProject, "Keyword"},
	{AttributeHost, "Keyword"},
	{AttributeWaitingFor, "KeywordList"},
	{AttributeResource, "Keyword"},
}

// Workflow IDs are functions of the business ID, so that starting twice is harmless and every tool finds the run.
const (
	portPrefix     = "port/"
	announcePrefix = "announce/"
	leasePrefix    = "lease/"
	webhookPrefix  = "webhook/"
	poolPrefix     = "pool/"
	journalPrefix  = "journal/"
)

// PortID is the workflow ID of the port with that UUID.
func PortID(id string) string { return portPrefix + id }

// AnnounceID is the ID of the workflow that brings out what agents are told of the network with that UUID.
func AnnounceID(network string) string { return announcePrefix + network }

// LeaseID is the workflow ID of the lease with that UUID.
func LeaseID(id string) string { return leasePrefix + id }

// WebhookID is the ID of the workflow that brings out notices of the lease with that UUID.
func WebhookID(lease string) string { return webhookPrefix + lease }

// PoolID is the ID of the workflow that brings the host of that name into the pool or out of it.
func PoolID(host string) string { return poolPrefix + host }

// JournalID is the workflow ID of the journal entry with that sequence number in decimal.
func JournalID(seq string) string { return journalPrefix + seq }

// Keys of the workflows that bring controller and rows together.
const (
	KeyFullSync = "full-sync"
	KeyRecovery = "recovery"
	KeyAudit    = "audit"
	KeyRepair   = "repair"
)

// Runs is the workflow type for each of these keys.
var Runs = map[string]string{KeyFullSync: FullSync, KeyRecovery: Recovery, KeyAudit: Audit, KeyRepair: Repair}

// RunID is the workflow ID for one of these keys.
func RunID(key string) string { return "odl/" + key }

// MaintenanceID is the workflow ID of the sweep with that name.
func MaintenanceID(name string) string { return "maintenance/" + name }

// Key is what follows the first slash of a workflow ID: the UUID, sequence number or name.
func Key(workflowID string) string {
	_, key, _ := strings.Cut(workflowID, "/")
	return key
}

// Queue is the task queue on which a workflow type runs.
func Queue(workflowType string) string {
	switch workflowType {
	case Port, Announce:
		return PortQueue
	case Lease, Webhook, Pool:
		return LeaseQueue
	default:
		return JournalQueue
	}
}

// Input is what every workflow is started with: the key of its row and nothing that the row knows better.
type Input struct {
	Key string `json:"key"`
	// Seen is what a port's first look would find, if the row has not changed since it asked for the workflow; nil: look.
	Seen *PortStanding `json:"seen,omitempty"`
}

// Report is an agent's word on its part of a port. One signal carries every event, because only signals of one name
// keep their order.
type Report struct {
	Entity string `json:"entity"` // DHCP, L2, or any entity for which a block exists
	Host   string `json:"host"`   // where the agent is
	// Event is complete, which is meant without one; of L2 also begun (the agent has taken the port up and will report
	// again) and lost (the device is unplugged, or the agent could not wire it).
	Event string `json:"event,omitempty"`
	// Revision is the port's revision_number that the agent acted on. With it, a report on an earlier binding to the
	// same host is told from one on the present; without it, only the host decides.
	Revision int64 `json:"revision,omitempty"`
}

// Verdict answers a Report sent as an update.
type Verdict struct {
	Status    string   `json:"status"`    // the object's status after the report
	Remaining []string `json:"remaining"` // entities that still block it
}

// Waiting is one party that something waits for.
type Waiting struct {
	For      string     `json:"for"`                // entity, entry, host or neighbour
	Since    *time.Time `json:"since,omitempty"`    // when the wait began
	Deadline *time.Time `json:"deadline,omitempty"` // until when; nil means for as long as it takes
}

// Why says what state something is in and, if it does not progress, for whom it waits.
type Why struct {
	Object      string     `json:"object"`   // workflow ID
	State       string     `json:"state"`    // status in the object's own words
	Sentence    string     `json:"sentence"` // the same for people, in one line
	Waiting     []Waiting  `json:"waiting"`
	LastError   string     `json:"last_error,omitempty"`
	NextAttempt *time.Time `json:"next_attempt,omitempty"`
	Ignored     int64      `json:"ignored_messages,omitempty"` // reports that counted for nothing
}

// Attributes are a workflow's search attributes at its start.
type Attributes struct {
	Status     string   `json:"status,omitempty"`
	Project    string   `json:"project,omitempty"`
	Host       string   `json:"host,omitempty"`
	Resource   string   `json:"resource,omitempty"` // port, lease, network …
	WaitingFor []string `json:"waiting_for,omitempty"`
}

// Nudge asks that a workflow run and look at its row again. Twice, late or in another order is harmless.
type Nudge struct {
	Workflow   string        // workflow type
	ID         string        // workflow ID
	Fresh      bool          // nothing of this ID can be running yet: an eager start will do
	After      time.Duration // not before; a later nudge of the same ID may bring it forward
	Summary    string        // static summary, the human name, for a workflow that must be started
	Attributes Attributes    // for a workflow that must be started
	// Seen is what the first look of a port's workflow would find if it is started fresh; nil: let it look. A claimed note
	// has none once another nudge has joined it.
	Seen *PortStanding
}

// Note is a claimed nudge on its way to Temporal.
type Note struct {
	Nudge
	Version  int64 // grows when another nudge joins the note; settling a note names the version it delivered
	Attempts int   // claims so far, this one included
}

// PortStanding is what a port's workflow knows of its row after one look.
type PortStanding struct {
	Gone     bool      `json:"gone,omitempty"`    // the row is deleted
	Status   string    `json:"status"`            // DELETED for a port that is gone
	Sentence string    `json:"sentence"`          // what it is and for whom it waits, in one line
	Waiting  []Waiting `json:"waiting,omitempty"` // For is the blocking entity
	Ignored  int64     `json:"ignored,omitempty"` // reports that counted for nothing
	Events   int       `json:"events,omitempty"`  // recorded for Nova and not yet delivered
	// Next is when to look without a message, because a deadline passes then; nil if none does.
	Next *time.Time `json:"next,omitempty"`
}

// EntryProgress is what a journal entry's workflow knows of its row after one look or attempt.
type EntryProgress struct {
	State     string    `json:"state"`
	Blocked   bool      `json:"blocked,omitempty"` // by the entries that Waiting names
	Sentence  string    `json:"sentence,omitempty"`
	Waiting   []Waiting `json:"waiting,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	// NextAttempt is when the controller is asked again; nil if nothing is due.
	NextAttempt *time.Time `json:"next_attempt,omitempty"`
}

// RunProgress is how far a run that brings controller and rows together is after a step.
type RunProgress struct {
	Idle     bool          `json:"idle,omitempty"` // there is nothing to do
	State    string        `json:"state"`
	Sentence string        `json:"sentence"`
	Waiting  []Waiting     `json:"waiting,omitempty"`
	After    time.Duration `json:"after,omitempty"` // before the next step
}

// Swept is what one round of the sweep found.
type Swept struct {
	Entries int `json:"entries"` // journal entries that nobody had looked at for long
	Revived int `json:"revived"` // workflows that had ended though their row lives
	// Forgotten are entries of the generation history that were too old or too many.
	Forgotten int64 `json:"forgotten"`
	Trimmed   int64 `json:"trimmed,omitempty"` // completed journal entries that were too old
	// Until is the moment up to which ended workflows were looked for; the next round goes on from there.
	Until time.Time `json:"until"`
}

// Sweep is the key of the sweep's workflow and schedule.
const Sweep = "sweep"
