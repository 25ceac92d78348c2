package journal

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// Trouble is why there is no answer. The empty Trouble means that there is one.
type Trouble string

// The troubles between us and the controller.
const (
	Unreachable Trouble = "unreachable" // not even connected: nothing was sent
	TLS         Trouble = "tls"         // no trusted connection: nothing was sent
	Timeout     Trouble = "timeout"     // sent, and no answer came in time
	Reset       Trouble = "reset"       // sent, and the connection broke before the answer was whole
	Open        Trouble = "open"        // not sent: the controller is known to be in trouble
	Unusable    Trouble = "unusable"    // the request could not be made at all
)

// Answer is what came back for a request.
type Answer struct {
	Status     int
	Body       []byte
	Trouble    Trouble
	Detail     string        // the trouble in the transport's words
	RetryAfter time.Duration // when the controller, or whoever guards it, asks for patience
}

// maxFailures is the number of unexpected answers with which an entry fails.
const maxFailures = 5

// Bounds of the pauses between attempts.
const (
	firstPause   = 200 * time.Millisecond
	refusedPause = time.Second
	longestPause = 30 * time.Second
	longestAsked = 10 * time.Minute // no controller may ask for more
)

// MissingParent is the reason of an outcome that only another object's arrival at the controller mends.
const MissingParent = "the controller misses an object that this one refers to (442)"

// missingDependency is OpenDaylight's own status for an object whose parent it has not seen yet.
const missingDependency = 442

// Judge tells what the answer to the entry's request means. What an operator or time can mend (no connection,
// credentials, overload, the controller's own errors, whatever answers in its place) is tried again for as
// long as it takes; other refusals count.
func Judge(e Entry, a Answer) Outcome {
	if o, expected := trouble(e, a); expected {
		return o
	}
	switch {
	case succeeded(a):
		return Outcome{Kind: Done}
	case a.Status == http.StatusNotFound && e.Operation == Delete:
		return Outcome{Kind: Done}
	case a.Status == http.StatusConflict && e.Operation == Create:
		return Outcome{Kind: Exists, Unsure: true, After: pause(e, firstPause, e.Attempt),
			Reason: "the controller has an object with this ID already"}
	default:
		return refused(e, says(a))
	}
}

// Unsendable is the outcome of an entry that no request can express.
func Unsendable(err error) Outcome { return Outcome{Kind: GivenUp, Reason: err.Error()} }

// trouble recognises what says nothing about the entry itself.
func trouble(e Entry, a Answer) (Outcome, bool) {
	o := Outcome{Kind: Again, After: max(pause(e, firstPause, e.Attempt), min(a.RetryAfter, longestAsked))}
	switch {
	case a.Trouble == Unusable:
		return refused(e, broken(a)), true
	case a.Trouble != "":
		o.Reason = broken(a)
		o.Unsure = a.Trouble == Timeout || a.Trouble == Reset
		o.Away = true
		return o, true
	}
	o.Reason, o.Away = says(a), a.Status >= http.StatusInternalServerError && a.RetryAfter == 0
	if succeeded(a) && !foreign(e, a.Body) {
		return Outcome{}, false
	}
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		o.Reason = "somebody else answers in the controller's place: " + says(a)
		o.Unsure = true
		return o, true
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return o, true
	case http.StatusRequestTimeout:
		o.Unsure = true
		return o, true
	case missingDependency:
		o.Reason = MissingParent
		return o, true
	}
	if a.Status >= 400 && a.Status < 500 {
		return Outcome{}, false
	}
	o.Unsure = true
	return o, true
}

func succeeded(a Answer) bool {
	return a.Status == http.StatusOK || a.Status == http.StatusCreated || a.Status == http.StatusNoContent
}

// foreign tells whether the body of a successful answer is not the controller's: it shows the object in its envelope, or
// nothing.
func foreign(e Entry, body []byte) bool {
	if len(bytes.TrimSpace(body)) == 0 {
		return false
	}
	o, err := decodeObject(body)
	_, enveloped := o[e.Object.Type]
	return err != nil || e.Operation != Delete && !enveloped
}

func refused(e Entry, reason string) Outcome {
	if e.Failures+1 >= maxFailures {
		return Outcome{Kind: GivenUp, Reason: reason}
	}
	return Outcome{Kind: Refused, After: pause(e, refusedPause, e.Failures+1), Reason: reason}
}

// brief is how much of foreign text is kept, in bytes.
const brief = 200

func broken(a Answer) string { return printable([]byte(string(a.Trouble)+": "+a.Detail), brief) }

// says quotes an answer, briefly.
func says(a Answer) string {
	s := fmt.Sprintf("the controller answered %d", a.Status)
	if text := http.StatusText(a.Status); text != "" {
		s += " " + text
	}
	if body := printable(a.Body, brief); body != "" {
		s += ": " + body
	}
	return s
}

// pause grows twofold with every attempt and differs by up to a quarter between entries, so that those that
// failed together do not come back together.
func pause(e Entry, first time.Duration, attempt int) time.Duration {
	p := min(first<<min(max(attempt-1, 0), 20), longestPause)
	spread := uint64(e.Seq)*0x9e3779b97f4a7c15 + uint64(attempt)*0xbf58476d1ce4e5b9
	return p - p/4*time.Duration(spread>>54)/1024
}
