package journal

import "time"

// Kind is the kind of an outcome.
type Kind string

// The kinds of outcomes. Done completes an entry, GivenUp leaves it to an operator; all others leave it pending.
const (
	Done    Kind = "done"     // the controller has the change
	Again   Kind = "again"    // an expected failure, retried without limit
	Exists  Kind = "exists"   // a create found an object with the same ID; Attempt compares them
	Refused Kind = "refused"  // an unexpected response, which counts as a failure
	GivenUp Kind = "given-up" // the last allowed unexpected response, or an entry that cannot be sent
)

// Outcome is the result of an attempt.
type Outcome struct {
	Kind   Kind
	After  time.Duration // back-off before the next attempt
	Reason string        // for human readers; empty if done
	Unsure bool          // the controller may have applied the change nevertheless
	Away   bool          // the controller was not available: the entry may be sent as soon as it is back
}

// State returns the entry's state after the outcome.
func (o Outcome) State() State {
	switch o.Kind {
	case Done:
		return Completed
	case GivenUp:
		return Failed
	default:
		return Pending
	}
}

// Counts reports whether the outcome counts towards the maximum number of failures.
func (o Outcome) Counts() bool { return o.Kind == Refused || o.Kind == GivenUp }
