package lease

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// The parties that berth calls for the reservations of a lease.
const (
	PartyNova      = "nova"
	PartyNeutron   = "neutron"
	PartyKeystone  = "keystone"
	PartyPlacement = "placement" // berth's own inventory
	PartyCloud     = "cloud"     // Nova or Neutron; the error does not say which
)

// partyNames are the names of the parties in sentences.
var partyNames = map[string]string{
	PartyNova:      "Nova",
	PartyNeutron:   "Neutron",
	PartyKeystone:  "Keystone",
	PartyPlacement: "Placement",
	PartyCloud:     "Nova or Neutron",
}

// PartyName returns the name of a party for sentences. For an unknown party, PartyName returns the parameter
// unchanged.
func PartyName(party string) string { return cmp.Or(partyNames[party], party) }

// CallError is the error of a call that berth made for a reservation. CallError says which party berth called
// and with which call, so that the explanation of a lease can name them.
type CallError struct {
	Party string // one of the constants PartyNova, PartyNeutron, …
	Call  string // method and path, or what the call does
	Err   error
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the cause of the error.
func (e *CallError) Unwrap() error { return e.Err }

// CallFailure says that the last call for a reservation has failed.
type CallFailure struct {
	Party    string
	Call     string
	Error    string
	Since    time.Time // first failure since the last success
	LastAt   time.Time
	NextAt   *time.Time `json:",omitempty"` // nil: no attempt is planned
	Attempts int
}

// What a reader who may not see hosts reads instead of a call and its error.
const (
	hiddenCall  = "a call"
	hiddenError = "only administrators can read the error"
)

// WithoutCallErrors returns the reservation without the texts of failed calls, for readers who may not see
// hosts. These texts quote requests to other services and their answers, with addresses and hosts of the
// cloud, and with servers and reservations of other projects.
func (r Reservation) WithoutCallErrors() Reservation {
	if r.Failure != nil {
		f := *r.Failure
		f.Call, f.Error = hiddenCall, hiddenError
		r.Failure = &f
	}
	if r.LastError != "" && !strings.HasPrefix(r.LastError, expiryReason) {
		r.LastError = hiddenError
	}
	return r
}

const (
	firstRetryDelay = 500 * time.Millisecond
	// stepRetryDelay is the maximum delay between two attempts while a user waits for a step.
	stepRetryDelay = 10 * time.Second
	// clearRetryDelay is the maximum delay between two attempts to remove the resources of a lease in ERROR.
	clearRetryDelay = time.Minute
)

// RetryDelay returns the delay after a failed attempt. The parameter `attempts` is the number of attempts
// that have failed in a row. The delay doubles with each attempt. The maximum is larger for a lease in ERROR,
// because no user waits for the next step of this lease.
func RetryDelay(status Status, attempts int) time.Duration {
	longest := stepRetryDelay
	if status == Error {
		longest = clearRetryDelay
	}
	delay := firstRetryDelay
	for ; attempts > 1 && delay < longest; attempts-- {
		delay *= 2
	}
	return min(delay, longest)
}

// Sentence describes the failure: which party failed, with which call, since when, how often, and when the
// next attempt is.
func (f CallFailure) Sentence(now time.Time) string {
	next := ""
	switch {
	case f.NextAt == nil:
	case f.NextAt.After(now):
		next = ", next attempt at " + formatTime(*f.NextAt)
	default:
		next = ", the next attempt is running"
	}
	return fmt.Sprintf("%s has failed since %s: %s (%s%s): %s",
		PartyName(f.Party), formatTime(f.Since), f.Call, countOf(f.Attempts, "attempt"), next, f.Error)
}

// FailedCalls returns the failed calls of the lease's reservations.
func (l Lease) FailedCalls() []CallFailure {
	var all []CallFailure
	for _, r := range l.Reservations {
		if r.Failure != nil {
			all = append(all, *r.Failure)
		}
	}
	return all
}
