// Package network holds the rules for networks, subnets, ports and agents: which provisioning blocks a port
// has, and what its status is. The functions of package network do no I/O and do not read a clock.
package network

import "time"

// Events that an agent reports.
const (
	ReportComplete = "complete" // the port is provisioned
	ReportBegun    = "begun"    // the agent has started to work on the port and will report again
	ReportLost     = "lost"     // the port is no longer wired: the device is unplugged
	ReportBlock    = "block"    // another service wants the port to wait for the entity
	// the port need not wait for the entity any more, although the entity has completed nothing
	ReportUnblock = "unblock"
)

// Report is an agent's report about the agent's part of the work for a port.
type Report struct {
	Entity string // DHCP, L2 …
	Host   string // host of the agent
	// ReportComplete, ReportBegun, ReportLost, ReportBlock or ReportUnblock; empty means ReportComplete
	Event    string
	Revision int64 // revision_number of the port on which the agent acted; 0: not given
	RPC      bool  // the report came over Neutron's RPC, so it names no revision; see Port.NeedsDetailsAgain
	// the sender may act only for Host: the report cannot affect what waits only for other hosts
	HostOnly bool
	Owner    string // who adds the block; only with ReportBlock
	// TimeoutSeconds is how long the added block may exist; 0: no limit; only with ReportBlock.
	TimeoutSeconds int64
	Fatal          bool // the port's status becomes ERROR after TimeoutSeconds; only with ReportBlock
}

// Waiting is an entity that blocks a port.
type Waiting struct {
	Entity   string
	Host     string // only reports from this host count; empty: any host
	Since    time.Time
	Deadline *time.Time // nil: no deadline
	Fatal    bool       // the port's status becomes ERROR after the deadline
	Sentence string     // entity, host, since and deadline in one line of text for human readers
}

// StatusView is a snapshot of a port for the port's workflow and for the workflow query `why`.
type StatusView struct {
	Deleted bool // the row is deleted; only Events may be set
	Name    string
	Project string
	Host    string
	Status  string
	Waiting []Waiting
	// why the port is not ACTIVE, apart from its blocks; empty if the port is ACTIVE or waits only for blocks
	Reason string
	// why the status of an ACTIVE port may be out of date; empty if the agent that wired the port is alive
	StaleAgentWarning string
	IgnoredReports    int64       // reports that were ignored since the port was created
	Events            []NovaEvent // recorded for Nova and not delivered yet, oldest first
	// Accepted says for each of the given reports, in the order of the reports, whether the report changed
	// the port.
	Accepted []bool `json:",omitempty"`
	// Stale says for each of the given reports whether the report is about an earlier binding of the port;
	// nil: none is.
	Stale        []bool     `json:",omitempty"`
	NextDeadline *time.Time // when the status changes because a deadline passes; nil if no deadline is set
}

// NovaEvent is one external event for Nova's os-server-external-events.
type NovaEvent struct {
	ID      int64  // ID of the event's row in the database
	Server  string // UUID of the server
	Name    string // network-vif-plugged …
	Status  string // completed or failed; empty for events without a status
	Tag     string // UUID of the port
	Project string // of the port; empty if an older version of berth has recorded the event
	Age     time.Duration
	// Claimed means that a process delivers the event now, without Temporal.
	Claimed bool
}
