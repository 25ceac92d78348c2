// Package journal holds the rules of the mirror journal: an entry's life cycle, what it depends on, which
// request it becomes, and what an attempt's outcome means. Value in, value out; it never does I/O and never
// asks for the time.
package journal

import (
	"encoding/json"
	"time"
)

// Operation is what happened to the object.
type Operation string

// The three operations.
const (
	Create Operation = "create"
	Update Operation = "update"
	Delete Operation = "delete"
)

// State is an entry's state.
type State string

// An entry's life: pending → processing → completed, back to pending after an expected failure, failed after
// too many unexpected ones.
const (
	Pending    State = "pending"
	Processing State = "processing"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Ref names an object.
type Ref struct {
	Type string // network, subnet, port …: the singular name at the controller
	ID   string
}

// Change is what a store method records in the transaction of an operation.
type Change struct {
	Object    Ref
	Operation Operation
	Data      json.RawMessage // the object as the controller shall see it, unfiltered; for a delete its last state
	Parents   []Ref           // what it needs: a create or update waits for their live entries, a delete of a parent waits for this
	Former    []Ref           // what else it names, or named before: their delete waits for this
	Project   string
	Name      string // for people
}

// Entry is a recorded change.
type Entry struct {
	Seq        int64
	Object     Ref
	Operation  Operation
	Data       json.RawMessage
	State      State
	Attempt    int  // how often it was taken; fences the outcome
	Failures   int  // unexpected answers
	Unsure     bool // the controller may have applied an attempt that seems to have failed
	Project    string
	Name       string
	LastError  string
	CreatedAt  time.Time
	TakenAt    *time.Time
	FinishedAt *time.Time
	RetryAt    *time.Time // not before, after an attempt that did not succeed
	Carrier    *int64     // the entry whose workflow made the last attempt; nil: its own
}

// Blocker is an earlier entry that another one waits for.
type Blocker struct {
	Seq       int64
	Object    Ref
	Operation Operation
	State     State
	Since     time.Time // when it was recorded
}

// Take is an entry as it was taken for sending, or the reason why it was not.
type Take struct {
	Entry    Entry         // State is processing if it may be sent now
	Blockers []Blocker     // not empty: it waits for these
	Wait     time.Duration // the last attempt's pause is not over for so long
	Repeat   bool          // the controller may have applied an earlier attempt, whose outcome is not known
}

// Decision is what somebody decided about an entry.
type Decision struct {
	At     time.Time
	Actor  string
	Action string // retry, skip …
	Reason string
}
