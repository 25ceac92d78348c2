package inventory

import "time"

// GenerationChange is an entry of the generation history: what one write changed about a consumer, a provider, or an allocation
// between them.
type GenerationChange struct {
	ID       int64     // increases with every change of the same consumer or provider
	At       time.Time // zero until it is written
	Actor    string
	Cause    Cause
	Consumer *GenerationShift
	Provider *GenerationShift
}

// GenerationShift is a change of a generation. From is nil if the object was created, To if it was deleted.
type GenerationShift struct {
	UUID     string
	From, To *int64
}

// Cause is the kind of write that changed a generation.
type Cause string

// The causes.
const (
	CauseCreated     Cause = "created"
	CauseDeleted     Cause = "deleted"
	CauseAllocations Cause = "allocations"
	CauseInventories Cause = "inventories"
	CauseAggregates  Cause = "aggregates"
	CauseTraits      Cause = "traits"
	CauseReshape     Cause = "reshape"
)
