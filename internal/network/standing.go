// Package network holds the rules of networks, subnets, ports and agents: when a port is blocked, by whom, and
// what its status is. Value in, value out; it never does I/O and never asks for the time.
package network

import "time"

// Events that an agent reports.
const (
	Complete = "complete" // its part is done
	Begun    = "begun"    // it has taken the port up and will report again
	Lost     = "lost"     // what it did is undone: the device is unplugged
)

// Report is an agent's word on its part of a port.
type Report struct {
	Entity   string // who reports: DHCP, L2 …
	Host     string // where the agent is
	Event    string // Complete, Begun or Lost; empty is Complete
	Revision int64  // of the port that the agent acted on; 0 if it does not say
}

// Waiting is an entity that still blocks a port.
type Waiting struct {
	Entity   string
	Host     string // whose report counts; empty if any host's does
	Since    time.Time
	Deadline *time.Time // nil: for as long as it takes
	Fatal    bool       // past the deadline the port is in ERROR
	Sentence string     // the same for people
}

// Standing is what a port is at one moment, as its workflow and `why` need it.
type Standing struct {
	Gone    bool // the row is deleted; only Events may be left
	Name    string
	Project string
	Host    string
	Status  string
	Waiting []Waiting
	Reason  string      // why it is not ACTIVE, whether or not somebody blocks it too; empty for an ACTIVE port
	Doubt   string      // why an ACTIVE port may be unplugged unknown to all; empty if its agent lives
	Ignored int64       // reports that counted for nothing, over the port's life
	Events  []NovaEvent // recorded for Nova and not yet delivered, oldest first
	// Accepted tells for each of the reports that were given, in order, whether it completed a block.
	Accepted []bool     `json:",omitempty"`
	Next     *time.Time // when the port changes by itself, because a deadline passes; nil if it does not
}

// NovaEvent is one external event for Nova's os-server-external-events.
type NovaEvent struct {
	ID     int64  // of the row, for settling it
	Server string // the server's UUID
	Name   string // network-vif-plugged …
	Status string // completed, failed; empty for events without one
	Tag    string // the port's UUID
	Age    time.Duration
}
