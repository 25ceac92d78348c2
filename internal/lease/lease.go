// Package lease holds the rules of leases, reservations and events: three state machines and the table that
// ties them. Value in, value out; it never does I/O and never asks for the time.
package lease

import (
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Status is a lease's status.
type Status string

// A lease's statuses, as Blazar's specification "Define state machines" names them.
const (
	Creating    Status = "CREATING"
	Pending     Status = "PENDING"
	Starting    Status = "STARTING"
	Active      Status = "ACTIVE"
	Terminating Status = "TERMINATING"
	Terminated  Status = "TERMINATED"
	Updating    Status = "UPDATING"
	Deleting    Status = "DELETING"
	Error       Status = "ERROR"
)

// ReservationStatus is a reservation's status.
type ReservationStatus string

// A reservation's statuses.
const (
	ReservationPending ReservationStatus = "pending"
	ReservationActive  ReservationStatus = "active"
	ReservationDeleted ReservationStatus = "deleted"
	ReservationError   ReservationStatus = "error"
)

// EventType tells what an event does.
type EventType string

// A lease has one event of each type; before_end_lease may be missing.
const (
	StartLease     EventType = "start_lease"
	EndLease       EventType = "end_lease"
	BeforeEndLease EventType = "before_end_lease"
)

// EventStatus is an event's status.
type EventStatus string

// An event's statuses.
const (
	Undone     EventStatus = "UNDONE"
	InProgress EventStatus = "IN_PROGRESS"
	Done       EventStatus = "DONE"
	Failed     EventStatus = "ERROR"
)

// Lease is a lease with its reservations and events.
type Lease struct {
	ID              uuid.UUID
	Name            string
	User            string
	Project         string
	Status          Status
	StartAt         time.Time
	EndAt           time.Time
	Degraded        bool
	DeleteRequested bool // somebody asked for its deletion, which wins over everything
	CreatedAt       time.Time
	UpdatedAt       *time.Time
	Reservations    []Reservation
	Events          []Event
	Ahead           int           // leases that are due at the same instant as it, and come first
	Blockers        []Blocker     // who must leave this lease's hosts before it can start
	Patience        time.Duration // its steps ask the cloud again for so long; 0: as long as usual
}

// Blocker is a lease that is past its end and has not yet left a host that this one holds next.
type Blocker struct {
	ID    uuid.UUID
	Name  string
	Host  string
	Since time.Time // its end
}

// Reservation is one claim on resources within a lease.
type Reservation struct {
	ReservationDraft
	ID               uuid.UUID
	Status           ReservationStatus
	Hosts            []int64       // the hosts that it holds, or that its instances are on
	Slots            map[int64]int // how many instances each host has room for
	Addresses        []netip.Addr  // the floating IPs that it holds
	AggregateID      *int64        // Nova's, once it has one
	ServerGroupID    string        // Nova's, if its instances have an affinity
	Shape, Shaped    int64         // of what it holds, and which of them the cloud was last told
	MissingResources bool
	ResourcesChanged bool
	LastError        string // why it is in error; empty if it shares another reservation's fate
	CreatedAt        time.Time
	UpdatedAt        *time.Time
}

// Event is something that happens to a lease at its time.
type Event struct {
	ID        uuid.UUID
	Type      EventType
	At        time.Time
	Status    EventStatus
	CreatedAt time.Time
	UpdatedAt *time.Time
}

// HoldsNothing tells whether nothing of the lease is in inventory or in the cloud: it never began, or has left all.
func (l Lease) HoldsNothing() bool {
	if l.Status != Error {
		return l.Status == Pending || l.Status == Terminated
	}
	end := l.event(EndLease)
	return end != nil && end.Status != Undone && !slices.ContainsFunc(l.Reservations, func(r Reservation) bool {
		return len(r.Hosts)+len(r.Addresses) > 0
	})
}

// event is the lease's event of that type, nil if it has none.
func (l *Lease) event(t EventType) *Event {
	for i := range l.Events {
		if l.Events[i].Type == t {
			return &l.Events[i]
		}
	}
	return nil
}

// clone copies the lease so that its parts can be changed apart.
func (l Lease) clone() Lease {
	l.Reservations = slices.Clone(l.Reservations)
	l.Events = slices.Clone(l.Events)
	return l
}

// Step is what is due for a lease.
type Step string

// The steps of a lease's life.
const (
	Wait      Step = "wait"       // nothing before Due.At
	Start     Step = "start"      // PENDING → STARTING → ACTIVE
	BeforeEnd Step = "before_end" // no change of status
	Refit     Step = "refit"      // no change of status: the cloud is told what an active lease has become
	End       Step = "end"        // → TERMINATING → TERMINATED
	Delete    Step = "delete"     // → DELETING → gone
	Stop      Step = "stop"       // nothing will ever be due again unless the row changes
)

// Due is the next step of a lease.
type Due struct {
	Step Step
	At   time.Time // for Wait
}

// Filter is which leases are listed, in the order in which they were made.
type Filter struct {
	Project string    // empty for all
	After   uuid.UUID // only those after this one; the zero UUID for all
	Limit   int       // at most so many; 0 for all
}
