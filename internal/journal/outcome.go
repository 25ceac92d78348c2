package journal

import "time"

// Kind is what an attempt came to.
type Kind string

// The kinds. Done completes an entry, GivenUp hands it to people, the others leave it pending.
const (
	Done    Kind = "done"     // the controller has the change
	Again   Kind = "again"    // expected trouble, for as long as it takes
	Exists  Kind = "exists"   // a create met an object of that ID: compare, as Attempt does
	Refused Kind = "refused"  // an unexpected answer, which counts
	GivenUp Kind = "given-up" // the last unexpected answer, or an entry that cannot be sent
)

// Outcome is how an attempt ended.
type Outcome struct {
	Kind   Kind
	After  time.Duration // before the next attempt
	Reason string        // for people; empty if done
	Unsure bool          // the controller may have applied the change all the same
	Away   bool          // there was no controller to speak of: whoever finds it back may send the entry at once
}

// State is the entry's state after that outcome.
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

// Counts tells whether the outcome is one of the few failures that an entry may have.
func (o Outcome) Counts() bool { return o.Kind == Refused || o.Kind == GivenUp }
