package inventory

import "time"

// Change is an entry of the generation history: what one write did to a consumer, to a provider, or to a consumer
// and a provider between which it allocated or released something.
type Change struct {
	ID       int64     // grows with every change of the same consumer or provider
	At       time.Time // zero until it is written
	Actor    string
	Cause    Cause
	Consumer *Shift
	Provider *Shift
}

// Shift is how the generation of a consumer or provider moved. From is nil for what was created, To for what is
// gone.
type Shift struct {
	UUID     string
	From, To *int64
}

// Cause is the kind of write that moved a generation.
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
