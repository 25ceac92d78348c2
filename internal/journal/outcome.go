package journal

import "time"

// OutcomeKind is the kind of an attempt's outcome.
type OutcomeKind string

// The kinds of outcomes of an attempt. After OutcomeDone the entry is completed. After OutcomeFailed the
// entry is failed and waits for an operator. After all other outcomes the entry is pending.
const (
	OutcomeDone  OutcomeKind = "done"  // the controller has the change
	OutcomeRetry OutcomeKind = "again" // an expected failure, retried without limit
	// a create found an object with the same ID; Attempt compares them
	OutcomeExists OutcomeKind = "exists"
	// a failure that counts: an unexpected response, or an error or a time-out of a controller that accepts
	// other writes
	OutcomeRejected OutcomeKind = "refused"
	OutcomeFailed   OutcomeKind = "given-up" // the last allowed failure, or an entry that cannot be sent
)

// ErrorCode says why an attempt failed, for the decisions of programs. It is empty if no decision depends on
// the reason.
type ErrorCode string

// MissingParent means that the controller lacks an object to which the entry's object refers. A retry can
// succeed only when the controller has that object.
const MissingParent ErrorCode = "missing_parent"

// Outcome is the result of an attempt to send a journal entry.
type Outcome struct {
	Kind         OutcomeKind
	RetryAfter   time.Duration // back-off before the next attempt
	Code         ErrorCode     // for programs
	Reason       string        // for human readers; empty if done
	MaybeApplied bool          // the controller may have applied the change although the attempt failed
	// the controller was not available; the entry may be sent as soon as the controller is available again
	ControllerDown bool
}

// State returns the state that the entry has after the outcome.
func (o Outcome) State() State {
	switch o.Kind {
	case OutcomeDone:
		return Completed
	case OutcomeFailed:
		return Failed
	default:
		return Pending
	}
}

// CountsAsFailure reports whether the outcome counts towards the maximum number of failures.
func (o Outcome) CountsAsFailure() bool { return o.Kind == OutcomeRejected || o.Kind == OutcomeFailed }
