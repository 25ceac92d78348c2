// Package lease holds the rules for leases, reservations and events. Leases, reservations and events have one
// state machine each, and a table says which statuses of a lease, its reservations and its events may occur
// together. All functions of package lease are pure: they do no I/O and do not read the clock.
package lease

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Status is the status of a lease.
type Status string

// Lease statuses, as in Blazar's specification "Define state machines".
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

// ReservationStatus is the status of a reservation.
type ReservationStatus string

// Reservation statuses.
const (
	ReservationPending ReservationStatus = "pending"
	ReservationActive  ReservationStatus = "active"
	ReservationDeleted ReservationStatus = "deleted"
	ReservationError   ReservationStatus = "error"
)

// EventType is the type of an event.
type EventType string

// A lease has one event of each type; before_end_lease is optional.
const (
	StartLease     EventType = "start_lease"
	EndLease       EventType = "end_lease"
	BeforeEndLease EventType = "before_end_lease"
)

// EventStatus is the status of an event.
type EventStatus string

// Event statuses.
const (
	EventUndone     EventStatus = "UNDONE"
	EventInProgress EventStatus = "IN_PROGRESS"
	EventDone       EventStatus = "DONE"
	EventFailed     EventStatus = "ERROR"
)

// Lease is a lease together with its reservations and events.
type Lease struct {
	ID              uuid.UUID
	Name            string
	User            string
	Project         string
	Status          Status
	StartAt         time.Time
	EndAt           time.Time
	Degraded        bool
	DeleteRequested bool // a delete request was accepted; deletion has priority over every other step
	CreatedAt       time.Time
	UpdatedAt       *time.Time
	Reservations    []Reservation
	Events          []Event
	// number of leases that are due at the same instant and ordered before this one
	Rank           int
	Blockers       []Blocker     // leases that must release a resource before this lease can start
	CloudRetryTime time.Duration // how long failed Nova and Neutron calls are retried; 0: the default
}

// Blocker is a lease that has passed its end and still holds a host, a network segment or a device, so that
// another lease that needs it has to wait. A lease that is itself blocked by such a lease holds nothing, and
// is no blocker.
type Blocker struct {
	ID       uuid.UUID
	Name     string
	Project  string `json:"-"`
	User     string `json:"-"`
	Host     string
	Resource string    `json:",omitempty"` // NetworkSegment or Device, if the lease does not hold a host
	Since    time.Time // end of the blocking lease
	// Stuck is true if it is unknown when the blocking lease releases the host: its end has failed, the calls
	// for it have failed for at least StuckAfter, or it has already started although it reserves the host for
	// a later time than the waiting lease.
	Stuck bool `json:",omitempty"`
}

// Anonymous returns the blocker without its ID, its name and its owner, for readers who may not see the
// blocking lease.
func (b Blocker) Anonymous() Blocker {
	b.ID, b.Name, b.Project, b.User = uuid.Nil, "", "", ""
	return b
}

// WithoutHost returns the blocker without the name of its host, for readers who may not see hosts.
func (b Blocker) WithoutHost() Blocker {
	b.Host = ""
	return b
}

// resourceLabel names what the lease holds in sentences.
func (b Blocker) resourceLabel() string {
	switch {
	case b.Resource == NetworkSegment:
		return "a network segment"
	case b.Resource == Device:
		return "a device"
	case b.Host == "":
		return "a host"
	}
	return "host " + b.Host
}

// label names the blocking lease in sentences.
func (b Blocker) label() string {
	if b.ID == uuid.Nil && b.Name == "" {
		return "another lease"
	}
	return fmt.Sprintf("lease %s (%s)", b.Name, b.ID)
}

// Reservation is the reservation of one kind of resource within a lease.
type Reservation struct {
	ReservationDraft
	ID        uuid.UUID
	Status    ReservationStatus
	Hosts     []int64       // hosts of the reservation, or of its instances
	Slots     map[int64]int // number of instances per host
	Addresses []netip.Addr  // floating IPs of the reservation
	// there are Addresses; workflows get this instead of Addresses
	HoldsAddresses bool        `json:",omitempty"`
	ResourceIDs    []uuid.UUID `json:",omitempty"` // network segments or devices of the reservation
	AggregateID    *int64      // ID of the Nova aggregate, if it exists
	ServerGroupID  string      // ID of the Nova server group, if the instances have an affinity
	// ID of the network that Neutron has for the reservation, if it exists
	NetworkID        string `json:",omitempty"`
	Revision         int64  // incremented when the resources change
	CloudRevision    int64  // revision that Nova and Neutron have
	MissingResources bool
	ResourcesChanged bool
	// why the reservation is in ERROR; empty if another reservation of the lease failed
	LastError string
	// the last call to Nova, Neutron or Placement, if it failed
	Failure   *CallFailure `json:",omitempty"`
	CreatedAt time.Time
	UpdatedAt *time.Time
}

// Event is an event of a lease that is due at a given time.
type Event struct {
	ID        uuid.UUID
	Type      EventType
	At        time.Time
	Status    EventStatus
	Runs      int `json:"-"` // how often a before_end_lease event has begun
	CreatedAt time.Time
	UpdatedAt *time.Time
}

// HoldsNothing reports whether the lease holds no allocations and no objects in Nova or Neutron, because the
// lease has not started yet or has released everything.
func (l Lease) HoldsNothing() bool {
	if l.Status != Error {
		return l.Status == Pending || l.Status == Terminated
	}
	end := l.event(EndLease)
	return end != nil && end.Status != EventUndone &&
		!slices.ContainsFunc(l.Reservations, Reservation.HoldsResources)
}

// HoldsResources reports whether hosts, floating IPs, network segments or devices are allocated to the
// reservation.
func (r Reservation) HoldsResources() bool {
	return len(r.Hosts)+len(r.Addresses)+len(r.ResourceIDs) > 0
}

// HasStarted reports whether the start of the lease has succeeded.
func (l Lease) HasStarted() bool {
	start := l.event(StartLease)
	return start != nil && start.Status == EventDone
}

// HasFailedToEnd reports whether the end of the lease has failed.
func (l Lease) HasFailedToEnd() bool {
	end := l.event(EndLease)
	return end != nil && end.Status == EventFailed
}

// RunningBeforeEnd returns the due time of the before_end_lease event while the event is in progress, and
// otherwise the zero time.
func (l Lease) RunningBeforeEnd() time.Time {
	if before := l.event(BeforeEndLease); before != nil && before.Status == EventInProgress {
		return before.At
	}
	return time.Time{}
}

// BeforeEndRuns returns how often the before_end_lease event has begun.
func (l Lease) BeforeEndRuns() int {
	if before := l.event(BeforeEndLease); before != nil {
		return before.Runs
	}
	return 0
}

// event returns the lease's event of the given type, or nil if the lease has no event of this type.
func (l *Lease) event(t EventType) *Event {
	for i := range l.Events {
		if l.Events[i].Type == t {
			return &l.Events[i]
		}
	}
	return nil
}

// clone returns a copy of the lease whose reservations and events can be changed without changing the
// original.
func (l Lease) clone() Lease {
	l.Reservations = slices.Clone(l.Reservations)
	l.Events = slices.Clone(l.Events)
	return l
}

// Step is a step in the life cycle of a lease.
type Step string

// The steps of a lease.
const (
	StepWait      Step = "wait"       // nothing is due before Due.At
	StepStart     Step = "start"      // PENDING → STARTING → ACTIVE
	StepBeforeEnd Step = "before_end" // the status does not change
	// the status does not change: Nova and Neutron get the changed resources of an active lease
	StepResync Step = "refit"
	StepEnd    Step = "end" // → TERMINATING → TERMINATED
	// PENDING → ERROR: another lease held a host until the end of this lease
	StepExpire Step = "expire"
	// the status stays ERROR: Nova, Neutron and Placement still have resources of the lease
	StepClear  Step = "clear"
	StepDelete Step = "delete" // → DELETING → row deleted
	StepStop   Step = "stop"   // nothing will be due unless the row changes
)

// Due is the next step of a lease, with the time at which this step is due.
type Due struct {
	Step Step
	At   time.Time // set for StepWait only
}

// Filter selects a page of a list of leases. The list is in the order of creation.
type Filter struct {
	Project string   // project of the leases; empty: all projects
	After   Position // of the last lease of the previous page; zero: the first page
	Limit   int      // maximum number of leases
}

// Position is the position of an object in a list that is in the order of creation. The position of an object
// never changes, and it stays valid when the object is deleted.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}
