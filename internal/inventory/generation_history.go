package inventory

import "time"

// Change is an entry of the generation history: what one write changed about a consumer, a provider, or an allocation
// between them.
type Change struct {
	ID       int64     // increases with every change of the same consumer or provider
	At       time.Time // zero until it is written
	Actor    string
	Cause    Cause
	Consumer *Shift
	Provider *Shift
}

// Shift is a change of a generation. From is nil if the object was created, To if it was deleted.
type Shift struct {
	UUID     string
	From, To *int64
}

// Cause is the kind of write that changed a generation.
type Cause string

// The causes.
const (
	Created     Cause = "created"
	Deleted     Cause = "deleted"
	Allocating  Cause = "allocations"
	Stocking    Cause = "inventories"
	Aggregating Cause = "aggregates"
	Qualifying  Cause = "traits"
	Reshaping   Cause = "reshape"
)
