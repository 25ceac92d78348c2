// Package journal holds the rules of the journal for OpenDaylight: the life cycle of an entry, its
// dependencies, the request that sends the entry to the controller, and the outcome of an attempt to send it.
// All functions are pure: they do no I/O and read no clock.
package journal

import (
	"encoding/json"
	"time"
)

// Operation is the kind of change of an object: create, update or delete.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Update Operation = "update"
	Delete Operation = "delete"
)

// State is the state of a journal entry.
type State string

// The states of a journal entry. A pending entry becomes processing when a process claims it in order to send
// it, and completed when the controller has the change. After an expected failure the entry becomes pending
// again. After too many other failures the entry becomes failed.
const (
	Pending    State = "pending"
	Processing State = "processing"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Ref identifies an object by its type and ID.
type Ref struct {
	Type string // OpenDaylight's singular name: network, subnet, port …
	ID   string
}

// Change is the creation, update or deletion of an object. The transaction that changes the object also
// records the change in the journal.
type Change struct {
	Object    Ref
	Operation Operation
	Data      json.RawMessage // the complete object, not filtered; for a delete its last state
	// objects that must be at the controller first: a create or update waits for their entries, and their
	// delete waits for this entry
	Parents []Ref
	// other objects that this one mentions, now or before: their delete waits for this entry
	Mentioned []Ref
	Project   string
	Name      string // name of the object, for human readers
}

// Entry is a change that is recorded in the journal.
type Entry struct {
	Seq          int64
	Object       Ref
	Operation    Operation
	Data         json.RawMessage
	State        State
	Attempt      int  // number of claims; the outcome of an older claim is refused
	Failures     int  // number of failures that count; see Outcome.CountsAsFailure
	MaybeApplied bool // the controller may have applied a failed attempt
	Project      string
	Name         string
	LastError    string
	CreatedAt    time.Time
	TakenAt      *time.Time
	FinishedAt   *time.Time
	RetryAt      *time.Time // earliest time of the next attempt
	SentBy       *int64     // entry whose workflow made the last attempt; nil: its own workflow
}

// Blocker is an earlier entry that must be completed before the blocked entry is sent.
type Blocker struct {
	Seq       int64
	Object    Ref
	Operation Operation
	State     State
	Since     time.Time // when the blocker was recorded
}

// ClaimResult is the result of claiming an entry: the claimed entry, or the reason why it was not claimed.
type ClaimResult struct {
	Entry        Entry         // State is processing if the entry was claimed
	Blockers     []Blocker     // entries that must be completed first
	Wait         time.Duration // remaining back-off after the last attempt
	MaybeApplied bool          // the controller may have applied an earlier attempt
	Pause        *Pause        // the journal is paused, so the entry was not claimed; nil: not paused
	// objects of the NestedType that the controller must have after an update of the entry's object
	Nested []Change
	// time from the end of the previous attempt until the claim; from the entry's creation if there was no
	// attempt
	SinceLast time.Duration
}

// OperatorDecision is an operator's decision about an entry.
type OperatorDecision struct {
	At     time.Time
	Actor  string
	Action string // retry, skip …
	Reason string
}
