// Package journal holds the rules of the OpenDaylight journal: the life cycle of an entry, its dependencies, its
// request to the controller, and the outcome of an attempt. All functions are pure: no I/O, no clock.
package journal

import (
	"encoding/json"
	"time"
)

// Operation is the operation on an object.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Update Operation = "update"
	Delete Operation = "delete"
)

// State is the state of an entry.
type State string

// The states of an entry. A pending entry becomes processing, then completed. It becomes pending again after an
// expected failure, and failed after too many unexpected responses.
const (
	Pending    State = "pending"
	Processing State = "processing"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Ref identifies an object.
type Ref struct {
	Type string // OpenDaylight's singular name: network, subnet, port …
	ID   string
}

// Change is an operation on an object that is recorded in the journal, in the transaction that makes it.
type Change struct {
	Object    Ref
	Operation Operation
	Data      json.RawMessage // the complete object, not filtered; for a delete its last state
	Parents   []Ref           // objects that must be at the controller first: a create or update waits for their entries, and their delete waits for this entry
	Mentioned []Ref           // other objects that this one mentions, now or before: their delete waits for this entry
	Project   string
	Name      string // name of the object, for human readers
}

// Entry is a recorded change.
type Entry struct {
	Seq          int64
	Object       Ref
	Operation    Operation
	Data         json.RawMessage
	State        State
	Attempt      int  // number of claims; fences the outcome
	Failures     int  // number of unexpected responses
	MaybeApplied bool // the controller may have applied a failed attempt
	Project      string
	Name         string
	LastError    string
	CreatedAt    time.Time
	TakenAt      *time.Time
	FinishedAt   *time.Time
	RetryAt      *time.Time // earliest time of the next attempt
	BatchLeader  *int64     // entry whose workflow made the last attempt; nil: its own workflow
}

// Blocker is an earlier entry that must be completed first.
type Blocker struct {
	Seq       int64
	Object    Ref
	Operation Operation
	State     State
	Since     time.Time // when it was recorded
}

// ClaimResult is the result of claiming an entry: the claimed entry, or the reason why it was not claimed.
type ClaimResult struct {
	Entry        Entry         // State is processing if the entry was claimed
	Blockers     []Blocker     // entries that must be completed first
	Wait         time.Duration // remaining back-off after the last attempt
	MaybeApplied bool          // the controller may have applied an earlier attempt
}

// OperatorDecision is an operator's decision about an entry.
type OperatorDecision struct {
	At     time.Time
	Actor  string
	Action string // retry, skip …
	Reason string
}
