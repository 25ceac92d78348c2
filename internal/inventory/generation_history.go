package inventory

import "time"

// GenerationChange is an entry of the generation history. A GenerationChange records how one write changed
// the generation of a consumer, of a provider, or of both.
type GenerationChange struct {
	ID        int64     // increases with every change of the same consumer or provider
	At        time.Time // zero until the change is written to the database
	Actor     string
	RequestID string // of the request that made the change; empty: none
	Cause     Cause
	Consumer  *GenerationShift
	Provider  *GenerationShift
}

// GenerationShift is a change of a generation. From is nil if the change created the consumer or provider. To
// is nil if the change deleted the consumer or provider.
type GenerationShift struct {
	UUID     string
	From, To *int64
}

// Cause is the kind of write that changed a generation.
type Cause string

// The causes of generation changes.
const (
	CauseCreated     Cause = "created"
	CauseDeleted     Cause = "deleted"
	CauseAllocations Cause = "allocations"
	CauseInventories Cause = "inventories"
	CauseAggregates  Cause = "aggregates"
	CauseTraits      Cause = "traits"
	CauseReshape     Cause = "reshape"
)
