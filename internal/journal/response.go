package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"berth/internal/text"
)

// TransportFailure is the reason why a request to the controller got no HTTP response. TransportFailure is
// empty if the request got a response.
type TransportFailure string

// Failures of the transport between berth and the controller.
const (
	Unreachable TransportFailure = "unreachable" // no connection: nothing was sent
	TLSFailure  TransportFailure = "tls"         // no trusted TLS connection: nothing was sent
	Timeout     TransportFailure = "timeout"     // sent, but no response arrived in time
	// sent, but the connection broke before the response was complete
	ConnectionReset TransportFailure = "reset"
	CircuitOpen     TransportFailure = "open"     // not sent: the circuit breaker is open
	Busy            TransportFailure = "busy"     // not sent: too many requests are in flight
	InvalidRequest  TransportFailure = "unusable" // the request could not be created
)

// Response is the controller's response to a request, or the reason why there is no response.
type Response struct {
	Status     int
	Body       []byte
	Failure    TransportFailure
	Detail     string        // the transport's error text
	RetryAfter time.Duration // the Retry-After header of the controller or of a proxy
	// AcceptsOthers means that the controller works: it has accepted another write since the previous attempt
	// at the entry.
	AcceptsOthers bool
}

// DefaultMaxFailures is the usual number of failures after which an entry becomes failed.
const DefaultMaxFailures = 5

// Bounds of the back-off between two attempts to send an entry.
const (
	firstBackoff    = 200 * time.Millisecond
	rejectedBackoff = time.Second
	maxBackoff      = 30 * time.Second
	maxRetryAfter   = 10 * time.Minute // upper bound of a requested Retry-After
)

// missingDependency is the HTTP status that OpenDaylight defines for an object whose parent it does not know.
const missingDependency = 442

// acceptsOthersSuffix is the end of the reason of an outcome that counts as a failure of the entry only
// because the controller has accepted other writes.
const acceptsOthersSuffix = "; the controller accepts other writes"

// Evaluate returns the outcome of the response to the entry's request. The entry is retried without limit
// after a failure that is not the entry's fault: no connection, wrong credentials, overload, an error of the
// controller, or a response from a proxy. Any other rejection counts as a failure of the entry itself. If the
// controller accepts other writes, an error of the controller, a timeout and a broken connection also count
// as failures of the entry. After maxFailures failures the entry becomes failed.
func Evaluate(e Entry, a Response, maxFailures int) Outcome {
	if o, expected := expectedFailure(e, a, maxFailures); expected {
		return o
	}
	switch {
	case isSuccess(a):
		return Outcome{Kind: OutcomeDone}
	case e.Operation == Delete && (a.Status == http.StatusNotFound || isUnknownMember(e, a)):
		return Outcome{Kind: OutcomeDone}
	case a.Status == http.StatusConflict && e.Operation == Create:
		return Outcome{
			Kind:         OutcomeExists,
			MaybeApplied: true,
			RetryAfter:   backoff(e, firstBackoff, e.Attempt),
			Reason:       "the controller already has an object with this ID",
		}
	default:
		return rejected(e, quoteResponse(a), maxFailures)
	}
}

// isUnknownMember reports whether the controller refuses to delete a member because its pool does not have
// the member. For members, the controller answers 400, and not 404.
func isUnknownMember(e Entry, a Response) bool {
	return byType[e.Object.Type].parent != "" && a.Status == http.StatusBadRequest &&
		strings.Contains(string(a.Body), "UUID does not exist")
}

// UnsendableOutcome returns the outcome of an entry for which no request can be created.
func UnsendableOutcome(err error) Outcome { return Outcome{Kind: OutcomeFailed, Reason: err.Error()} }

// expectedFailure recognises failures and responses that are not a rejection of the entry itself, and returns
// their outcome.
func expectedFailure(e Entry, a Response, maxFailures int) (Outcome, bool) {
	o := Outcome{
		Kind:       OutcomeRetry,
		RetryAfter: max(backoff(e, firstBackoff, e.Attempt), min(a.RetryAfter, maxRetryAfter)),
	}
	switch {
	case a.Failure == InvalidRequest:
		return rejected(e, quoteFailure(a), maxFailures), true
	case a.Failure != "":
		o.Reason = quoteFailure(a)
		o.MaybeApplied = a.Failure == Timeout || a.Failure == ConnectionReset
		o.ControllerDown = true
		// the controller accepts other writes, so only this request hangs or breaks
		if o.MaybeApplied && a.AcceptsOthers {
			o = rejected(e, o.Reason+acceptsOthersSuffix, maxFailures)
			o.MaybeApplied = true
		}
		return o, true
	}
	o.Reason, o.ControllerDown = quoteResponse(a), isControllerError(a)
	if o.ControllerDown && a.AcceptsOthers {
		o = rejected(e, o.Reason+acceptsOthersSuffix, maxFailures)
		o.MaybeApplied = a.Status != http.StatusServiceUnavailable
		return o, true
	}
	if isSuccess(a) && !isForeign(e, a.Body) {
		return Outcome{}, false
	}
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
		o.Reason = "the response is not from the controller: " + quoteResponse(a)
		o.MaybeApplied = true
		return o, true
	case http.StatusUnauthorized,
		http.StatusForbidden,
		http.StatusTooManyRequests,
		http.StatusServiceUnavailable:
		return o, true
	case http.StatusRequestTimeout:
		o.MaybeApplied = true
		return o, true
	case missingDependency:
		o.Code, o.Reason = MissingParent, "the controller does not know an object that this one refers to (442)"
		return o, true
	}
	if a.Status >= 400 && a.Status < 500 {
		return Outcome{}, false
	}
	o.MaybeApplied = true
	return o, true
}

// isControllerError reports whether the response is an error of the controller without a Retry-After header,
// so berth does not know when the error will end.
func isControllerError(a Response) bool {
	return a.Status >= http.StatusInternalServerError && a.RetryAfter == 0
}

func isSuccess(a Response) bool {
	return a.Status == http.StatusOK || a.Status == http.StatusCreated || a.Status == http.StatusNoContent
}

// MaxAnswer returns the number of bytes of the responses to an entry's requests that must be kept. The
// controller's object is about as large as the one that berth sends; a much larger object differs from it.
func MaxAnswer(e Entry) int64 { return 64<<10 + 4*int64(len(e.Data)) }

// isForeign reports whether a response with a success status is not from the controller, but from a proxy or
// a login page. The controller itself returns the object in its JSON envelope, or no body. A body of
// MaxAnswer bytes may lack its end, so its beginning decides.
func isForeign(e Entry, body []byte) bool {
	if len(bytes.TrimSpace(body)) == 0 {
		return false
	}
	if int64(len(body)) >= MaxAnswer(e) {
		d := json.NewDecoder(bytes.NewReader(body))
		begin, err := d.Token()
		name, err2 := d.Token()
		return err != nil || err2 != nil || begin != json.Delim('{') ||
			e.Operation != Delete && name != e.Object.Type
	}
	o, err := decodeObject(body)
	_, enveloped := o[e.Object.Type]
	return err != nil || e.Operation != Delete && !enveloped
}

func rejected(e Entry, reason string, maxFailures int) Outcome {
	if e.Failures+1 >= maxFailures {
		return Outcome{Kind: OutcomeFailed, Reason: reason}
	}
	return Outcome{
		Kind:       OutcomeRejected,
		RetryAfter: backoff(e, rejectedBackoff, e.Failures+1),
		Reason:     reason,
	}
}

// maxQuote is the maximum number of characters of a response that an error text quotes.
const maxQuote = 200

func quoteFailure(a Response) string {
	return text.OneLine(string(a.Failure)+": "+a.Detail, maxQuote)
}

// quoteResponse describes a response in one line and quotes its body.
func quoteResponse(a Response) string {
	s := fmt.Sprintf("the controller answered %d", a.Status)
	if status := http.StatusText(a.Status); status != "" {
		s += " " + status
	}
	if body := text.OneLine(a.Body, maxQuote); body != "" {
		s += ": " + body
	}
	return s
}

// backoff returns the pause before the next attempt. The pause doubles with every attempt. The pause differs
// by up to a quarter between entries, so that entries that failed at the same time are not retried at the
// same time.
func backoff(e Entry, first time.Duration, attempt int) time.Duration {
	p := min(first<<min(max(attempt-1, 0), 20), maxBackoff)
	spread := uint64(e.Seq)*0x9e3779b97f4a7c15 + uint64(attempt)*0xbf58476d1ce4e5b9
	return p - p/4*time.Duration(spread>>54)/1024
}
