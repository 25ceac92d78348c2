// Package network holds the rules of networks, subnets, ports and agents: when a port is blocked, by whom, and
// what its status is. Value in, value out; it never does I/O and never asks for the time.
package network

import "time"

// Report is an agent's word that its part of a port is done.
type Report struct {
	Entity string // the entity that blocks the port: DHCP, L2 …
	Host   string // where the agent did it
}

// Waiting is an entity that still blocks a port.
type Waiting struct {
	Entity   string
	Host     string // whose report counts; empty if any host's does
	Since    time.Time
	Deadline *time.Time // nil: for as long as it takes
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
	Ignored int64       // reports that counted for nothing, over the port's life
	Events  []NovaEvent // recorded for Nova and not yet delivered, oldest first
	// Accepted tells for each of the reports that were given, in order, whether it completed a block.
	Accepted []bool `json:",omitempty"`
}

// NovaEvent is one external event for Nova's os-server-external-events.
type NovaEvent struct {
	ID     int64  // of the row, for settling it
	Server string // the server's UUID
	Name   string // network-vif-plugged …
	Status string // completed, failed; empty for events without one
	Tag    string // the port's UUID
}
