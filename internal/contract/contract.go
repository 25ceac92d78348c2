// Package contract defines what crosses Temporal: workflow types, workflow IDs, task queues, signals,
// queries, updates and search attributes with their payloads. The relay, the workers, the CLI and the tools
// for agents use the names that package contract defines. Package contract imports no other package of this
// module and no SDK, so that every package may import contract.
//
// Only the activities of a lease have a payload of another package: lease.Lease, with which the functions of
// package lease decide. The list of public names, which a test of package server keeps, contains the members
// of all payloads, because running workflows depend on them.
package contract

import (
	"strings"
	"time"
)

// Workflow types.
const (
	Port               = "Port"
	Lease              = "Lease"
	JournalEntry       = "JournalEntry"
	Maintenance        = "Maintenance"
	AgentNotifications = "AgentNotifications" // sends the recorded notifications of one network to its agents
	// sends the recorded notifications of one lease, port or trunk to the webhook
	Webhook = "Webhook"
	Pool    = "Pool" // adds one host to Nova's aggregate "freepool", or removes it
	// FullSync, Recovery, Audit and Repair compare the OpenDaylight controller with the rows of the database.
	// At any time, at most one FullSync, one Recovery, one Audit and one Repair run.
	FullSync = "FullSync"
	Recovery = "Recovery"
	Audit    = "Audit"
	Repair   = "Repair"
)

// EntityWorkflows lists the workflow types whose workflows each belong to one row of the database.
var EntityWorkflows = []string{
	Port,
	AgentNotifications,
	Lease,
	Webhook,
	Pool,
	JournalEntry,
	FullSync,
	Recovery,
	Audit,
	Repair,
}

// Task queues. By default, one worker polls all task queues; to scale the workers of each task queue
// separately, run workers that poll only one task queue.
const (
	PortQueue    = "ports"
	LeaseQueue   = "leases"
	JournalQueue = "journal"
)

// TaskQueues lists the task queues, which every process with the role temporal polls.
var TaskQueues = []string{PortQueue, LeaseQueue, JournalQueue}

// Signals, updates and queries.
const (
	// SignalProvisioningComplete is a signal whose payload is a Report. UpdateProvisioningComplete, the
	// update with the same name as the signal, takes a Report and returns a ReportResult.
	SignalProvisioningComplete = "provisioning-complete"
	UpdateProvisioningComplete = "provisioning-complete"
	// SignalChanged has no payload. The signal SignalChanged makes the workflow read its row from the
	// database again.
	SignalChanged = "changed"
	// QueryWhy returns a Why. Every workflow answers the query QueryWhy.
	QueryWhy = "why"
)

// Search attributes. BerthWaitingFor has the type keyword list; all other search attributes of berth have the
// type keyword.
const (
	AttributeStatus     = "BerthStatus"
	AttributeProject    = "BerthProject"
	AttributeHost       = "BerthHost"
	AttributeWaitingFor = "BerthWaitingFor"
	AttributeResource   = "BerthResource"
)

// SearchAttributes lists every search attribute. The field Type is the name that the temporal CLI uses for
// the type of the search attribute.
var SearchAttributes = []struct{ Name, Type string }{
	{AttributeStatus, "Keyword"},
	{AttributeProject, "Keyword"},
	{AttributeHost, "Keyword"},
	{AttributeWaitingFor, "KeywordList"},
	{AttributeResource, "Keyword"},
}

// A workflow ID is computed from the ID of the workflow's object. Because the workflow ID is computed, a
// workflow that is started twice runs only once, and every tool can find the workflow of an object.
const (
	portPrefix               = "port/"
	agentNotificationsPrefix = "agent-notifications/"
	leasePrefix              = "lease/"
	webhookPrefix            = "webhook/"
	poolPrefix               = "pool/"
	journalPrefix            = "journal/"
)

// PortID returns the workflow ID of the port with the given UUID.
func PortID(id string) string { return portPrefix + id }

// AgentNotificationsID returns the ID of the workflow that notifies the agents of the network with the given
// UUID.
func AgentNotificationsID(network string) string { return agentNotificationsPrefix + network }

// LeaseID returns the workflow ID of the lease with the given UUID.
func LeaseID(id string) string { return leasePrefix + id }

// WebhookID returns the ID of the workflow that sends the webhook notifications of the lease, port or trunk
// with the given UUID.
func WebhookID(object string) string { return webhookPrefix + object }

// PoolID returns the ID of the workflow that adds the given host to Nova's aggregate "freepool" or removes
// the host from this aggregate.
func PoolID(host string) string { return poolPrefix + host }

// JournalID returns the workflow ID of the journal entry with the given sequence number, in decimal.
func JournalID(seq string) string { return journalPrefix + seq }

// Keys of the singleton workflows. The workflow ID for KeySweep is also the ID of the Temporal schedule that
// runs the sweep.
const (
	KeyFullSync = "full-sync"
	KeyRecovery = "recovery"
	KeyAudit    = "audit"
	KeyRepair   = "repair"
	KeySweep    = "sweep"
)

// RunWorkflows contains the workflows that compare the OpenDaylight controller with the database: it maps the
// key of each workflow to the workflow type.
var RunWorkflows = map[string]string{
	KeyFullSync: FullSync,
	KeyRecovery: Recovery,
	KeyAudit:    Audit,
	KeyRepair:   Repair,
}

// RunID returns the workflow ID for a key of RunWorkflows.
func RunID(key string) string { return "odl/" + key }

// MaintenanceID returns the workflow ID of the maintenance job with the given name.
func MaintenanceID(name string) string { return "maintenance/" + name }

// UUIDPrefix returns the part of a workflow ID before the UUID; empty for workflow types whose IDs contain no
// UUID.
func UUIDPrefix(workflowType string) string {
	switch workflowType {
	case Port:
		return portPrefix
	case AgentNotifications:
		return agentNotificationsPrefix
	case Lease:
		return leasePrefix
	case Webhook:
		return webhookPrefix
	default:
		return ""
	}
}

// Key returns the part of a workflow ID after the first slash: a UUID, a sequence number or a name.
func Key(workflowID string) string {
	_, key, _ := strings.Cut(workflowID, "/")
	return key
}

// TaskQueue returns the task queue of a workflow type.
func TaskQueue(workflowType string) string {
	switch workflowType {
	case Port, AgentNotifications:
		return PortQueue
	case Lease, Webhook, Pool:
		return LeaseQueue
	default:
		return JournalQueue
	}
}

// Input is the input of every workflow. Input contains the key of the workflow's row, but not the content of
// the row; only a port workflow's PortStatus derives from the content.
type Input struct {
	Key string `json:"key"`
	// PortStatus is the result that a port workflow's first read would return if the row has not changed
	// since the workflow was requested. If PortStatus is nil, the workflow reads the row when it starts.
	PortStatus *PortStatus `json:"seen,omitempty"`
	// FailedAttempt is the error of a delivery that the previous run interrupted in order to continue as new.
	// The new run continues the delivery with a regular activity. FailedAttempt is empty if no delivery was
	// interrupted.
	FailedAttempt string `json:"failed_attempt,omitempty"`
	// Interrupted is true if the previous run of a port workflow continued as new while it waited for the
	// database. The new run reads the row although it has a PortStatus, and applies the Reports that the
	// previous run had received.
	Interrupted bool     `json:"interrupted,omitempty"`
	Reports     []Report `json:"reports,omitempty"`
	// RefusedReport describes the last refused report that the previous run of a port workflow received;
	// empty: none.
	RefusedReport string `json:"refused_report,omitempty"`
	// Step is the step of a lease that the previous run interrupted in order to continue as new. The new run
	// retries failed calls of this step until RetryUntil.
	Step       string     `json:"step,omitempty"`
	RetryUntil *time.Time `json:"retry_until,omitempty"`
}

// Report is an agent's report about the part of a port that the agent configures. All reports use the same
// signal, because Temporal keeps the order only among signals with the same name.
type Report struct {
	Entity string `json:"entity"` // DHCP, L2, or any other entity that has a provisioning block
	Host   string `json:"host"`   // the agent's host
	// Event is "complete", "begun", "lost", "block" or "unblock"; empty means "complete". Only reports with
	// the entity L2 have the event "begun" or "lost". The event "begun" means that the agent has started to
	// wire the port and will report again. The event "lost" means that the device is unplugged, or that the
	// agent could not wire the port.
	//
	// With the event "block", another service makes the port wait for an entity other than DHCP and L2: the
	// port becomes ACTIVE only after the event "complete" for this entity. The event "unblock" ends the wait
	// without a completion.
	Event string `json:"event,omitempty"`
	// Owner names who adds a block, TimeoutSeconds is how long the block may exist (0: no limit), and Fatal
	// means that the port's status becomes ERROR after this time. These three fields have a meaning only with
	// the event "block".
	Owner          string `json:"owner,omitempty"`
	TimeoutSeconds int64  `json:"timeout_seconds,omitempty"`
	Fatal          bool   `json:"fatal,omitempty"`
	// Revision is the revision_number that the port had in the state on which the agent acted. The revision
	// distinguishes a report about an earlier binding to the same host from a report about the current
	// binding of the port. For a report without a revision, berth compares only the report's host with the
	// host of the port's binding.
	Revision int64 `json:"revision,omitempty"`
	// Signature is the Ed25519 signature of SignedText by a key of the host, in Base64. ExpiresAt is the time
	// until which the signature is valid, in seconds since 1970 in UTC. Both are empty in a report that is
	// not signed; see Sign.
	ExpiresAt int64  `json:"expires_at,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// ReportEvents are the values of the field Event of a Report.
var ReportEvents = []string{"complete", "begun", "lost", "block", "unblock"}

// Types of the errors of the update UpdateProvisioningComplete that the agent's report itself causes.
const (
	ReportRefused = "ReportRefused" // the report is not signed by a key of its host
	InvalidReport = "InvalidReport"
)

// ReportErrors lists these types.
var ReportErrors = []string{ReportRefused, InvalidReport}

// ReportResult is the result of the update UpdateProvisioningComplete.
type ReportResult struct {
	Status    string   `json:"status"`    // the port's status after the report
	Remaining []string `json:"remaining"` // entities that still block the port
	// Stale means that the report is about an earlier binding of the port, so that it changed nothing.
	Stale bool `json:"stale,omitempty"`
}

// Waiting names one entity, entry, host or service for which a workflow waits.
type Waiting struct {
	// an entity, a journal entry, a host or an external service
	For      string     `json:"for"`
	Since    *time.Time `json:"since,omitempty"`    // when the wait began
	Deadline *time.Time `json:"deadline,omitempty"` // when the wait ends at the latest; nil: no limit
}

// Why describes the state of a workflow's object. If the object waits for something, Why also says what the
// object waits for.
type Why struct {
	Object      string     `json:"object"`   // workflow ID
	State       string     `json:"state"`    // the object's status
	Sentence    string     `json:"sentence"` // the same information as one line of text
	Waiting     []Waiting  `json:"waiting"`
	LastError   string     `json:"last_error,omitempty"`
	NextAttempt *time.Time `json:"next_attempt,omitempty"`
	// IgnoredReports counts agents' reports that changed nothing.
	IgnoredReports int64 `json:"ignored_messages,omitempty"`
}

// Attributes are the search attributes that a workflow gets when it starts.
type Attributes struct {
	Status     string   `json:"status,omitempty"`
	Project    string   `json:"project,omitempty"`
	Host       string   `json:"host,omitempty"`
	Resource   string   `json:"resource,omitempty"` // port, lease, network and so on
	WaitingFor []string `json:"waiting_for,omitempty"`
}

// Nudge is a request to start or signal a workflow, so that the workflow reads its row again. A nudge that is
// repeated, late or out of order does no harm, because the workflow always reads the current row.
type Nudge struct {
	Workflow string // workflow type
	ID       string // workflow ID
	// no workflow with this ID can be running yet, so the relay requests an eager start
	NotRunning bool
	Restart    bool // start the workflow again even if it has completed, because its row is open
	// time until the earliest delivery; a later nudge with the same ID may shorten it
	Delay      time.Duration
	Summary    string     // static summary (the object's name), used if the workflow must be started
	Attributes Attributes // search attributes, used if the workflow must be started
	// PortStatus becomes Input.PortStatus if the relay starts the workflow eagerly. If two nudges for the
	// same workflow were merged into one note of the outbox, PortStatus is nil after the note is claimed.
	PortStatus *PortStatus
}

// WithoutProject returns the nudge without the project of the object.
func (n Nudge) WithoutProject() Nudge {
	n.Attributes.Project = ""
	if n.PortStatus != nil {
		n.PortStatus = new(n.PortStatus.WithoutProject())
	}
	return n
}

// HasOneExecution reports whether a completed workflow of the given type is started again only by a nudge
// with Restart.
func HasOneExecution(workflow string) bool { return workflow == JournalEntry }

// Note is a nudge that a relay has claimed and delivers to Temporal.
type Note struct {
	Nudge
	// increases when another nudge is merged into the note; only the delivered version is deleted
	Version   int64
	CreatedAt time.Time // tells the note from a later one of the same workflow, whose version begins anew
	Attempts  int       // number of claims, including this one
	Refusals  int       // how many times Temporal has refused the note for a reason that concerns only this note
	Origin    Origin
}

// Origin is the last request that enqueued a note. It is empty if berth itself has enqueued the note.
type Origin struct {
	Traceparent     string // W3C traceparent of the request; empty: the request is not traced
	RequestID       string // "req-" and a UUID
	GlobalRequestID string // the request ID that the caller sent
}

// Memo fields of a workflow: the IDs of the request that started the workflow.
const (
	MemoRequestID       = "request_id"
	MemoGlobalRequestID = "global_request_id"
)

// PortStatus is what a port workflow learns about the port when it reads the port's row once.
type PortStatus struct {
	Deleted bool   `json:"gone,omitempty"` // the row is deleted
	Status  string `json:"status"`         // DELETED for a deleted port
	// the status, and what the port waits for, in one line
	Sentence       string    `json:"sentence"`
	Waiting        []Waiting `json:"waiting,omitempty"` // For is the blocking entity
	IgnoredReports int64     `json:"ignored,omitempty"` // reports that changed nothing
	// PendingNovaEvents counts the events that are recorded for Nova and not yet delivered.
	PendingNovaEvents int `json:"events,omitempty"`
	// LookAgainAt is the time at which the workflow reads the row again even if it gets no signal; nil means
	// that the workflow only waits for signals.
	LookAgainAt *time.Time `json:"next,omitempty"`
	// Attributes has the port's project, host and resource type for the search attributes of the workflow.
	// Attributes is nil if the port is deleted, and in results that an earlier version of berth has recorded;
	// the workflow then keeps its search attributes.
	Attributes *Attributes `json:"attributes,omitempty"`
	// Refused says, for each report that the workflow passed to the activity, why berth refused it; Refused
	// is empty if berth refused none.
	Refused []Refusal `json:"refused,omitempty"`
	// Stale says, for each report, whether it is about an earlier binding of the port; Stale is empty if none
	// is.
	Stale []bool `json:"stale,omitempty"`
}

// WithoutProject returns the status without the project of the port.
func (s PortStatus) WithoutProject() PortStatus {
	if s.Attributes != nil {
		attributes := *s.Attributes
		attributes.Project = ""
		s.Attributes = &attributes
	}
	return s
}

// EntryProgress is what the workflow of a journal entry learns about the entry when it reads the entry's row
// or attempts to send the entry.
type EntryProgress struct {
	State     string    `json:"state"`
	Blocked   bool      `json:"blocked,omitempty"` // Waiting names the blocking entries
	Sentence  string    `json:"sentence,omitempty"`
	Waiting   []Waiting `json:"waiting,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	Attempts  int       `json:"attempts,omitempty"` // attempts so far
	// SentBy is the workflow whose activity made the last attempt; empty: the entry's own workflow.
	SentBy string `json:"sent_by,omitempty"`
	// NextAttempt is the time of the next request to the OpenDaylight controller; nil: no request is due.
	NextAttempt *time.Time `json:"next_attempt,omitempty"`
}

// RunProgress is the progress of a full sync, recovery, audit or repair after one step.
type RunProgress struct {
	Idle     bool          `json:"idle,omitempty"` // no run of this kind is open
	State    string        `json:"state"`
	Sentence string        `json:"sentence"`
	Waiting  []Waiting     `json:"waiting,omitempty"`
	Delay    time.Duration `json:"after,omitempty"` // pause before the next step
}

// SweepResult is the result of one round of the sweep, the scheduled job that restarts lost workflows and
// deletes old rows.
type SweepResult struct {
	// nudged workflows of journal entries that no workflow had examined lately
	NudgedEntries      int `json:"entries"`
	RestartedWorkflows int `json:"revived"` // workflows that had ended although their row exists
	// rows deleted from the generation history by its retention
	TrimmedHistory int64 `json:"forgotten"`
	// completed journal entries deleted by their retention
	TrimmedEntries int64 `json:"trimmed,omitempty"`
	// Until is the end of the period in which this round of the sweep searched for ended workflows. The next
	// round of the sweep searches the period that begins shortly before Until, because Temporal lists an
	// ended workflow late.
	Until time.Time `json:"until"`
	// Unsearched is the time at which the next search begins because so many workflows have ended that this
	// round has restarted only the first of them; zero: this round has searched until its beginning.
	Unsearched time.Time `json:"unsearched,omitzero"`
	// Failures are the errors of the parts of the round, and of the steps of the sweep, that have failed.
	Failures []string `json:"failures,omitempty"`
}
