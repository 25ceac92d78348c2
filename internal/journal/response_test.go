package journal

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func status(code int) Response { return Response{Status: code} }

func broken(tr TransportFailure) Response { return Response{Failure: tr, Detail: "detail"} }

func TestEvaluate_OutcomeByResponse(t *testing.T) {
	t.Parallel()
	all := []Operation{Create, Update, Delete}
	for _, tt := range []struct {
		answer Response
		ops    []Operation
		want   OutcomeKind
		unsure bool
	}{
		{status(200), all, OutcomeDone, false},
		{status(201), all, OutcomeDone, false},
		{status(204), all, OutcomeDone, false},
		{status(202), all, OutcomeRetry, true},
		{status(206), all, OutcomeRetry, true},
		{status(301), all, OutcomeRetry, true},
		{status(302), all, OutcomeRetry, true},
		{status(304), all, OutcomeRetry, true},
		{status(0), all, OutcomeRetry, true},
		{status(400), all, OutcomeRejected, false},
		{status(401), all, OutcomeRetry, false},
		{status(403), all, OutcomeRetry, false},
		{status(404), []Operation{Create, Update}, OutcomeRejected, false},
		{status(404), []Operation{Delete}, OutcomeDone, false},
		{status(405), all, OutcomeRejected, false},
		{status(408), all, OutcomeRetry, true},
		{status(409), []Operation{Create}, OutcomeExists, true},
		{status(409), []Operation{Update, Delete}, OutcomeRejected, false},
		{status(422), all, OutcomeRejected, false},
		{status(429), all, OutcomeRetry, false},
		{status(442), all, OutcomeRetry, false},
		{status(500), all, OutcomeRetry, true},
		{status(502), all, OutcomeRetry, true},
		{status(503), all, OutcomeRetry, false},
		{status(504), all, OutcomeRetry, true},
		{status(599), all, OutcomeRetry, true},
		{broken(Unreachable), all, OutcomeRetry, false},
		{broken(TLSFailure), all, OutcomeRetry, false},
		{broken(CircuitOpen), all, OutcomeRetry, false},
		{broken(Busy), all, OutcomeRetry, false},
		{broken(Timeout), all, OutcomeRetry, true},
		{broken(ConnectionReset), all, OutcomeRetry, true},
		{broken(InvalidRequest), all, OutcomeRejected, false},
	} {
		for _, op := range tt.ops {
			t.Run(fmt.Sprintf("%s %d%s", op, tt.answer.Status, tt.answer.Failure), func(t *testing.T) {
				t.Parallel()
				got := Evaluate(Entry{Seq: 1, Attempt: 1, Operation: op}, tt.answer, DefaultMaxFailures)
				if got.Kind != tt.want || got.MaybeApplied != tt.unsure {
					t.Errorf("Evaluate: got outcome %+v, want kind %s and MaybeApplied %t",
						got, tt.want, tt.unsure)
				}
				if (got.Kind == OutcomeDone) != (got.Reason == "") {
					t.Errorf(
						"Evaluate: got outcome %s with reason %q, want a reason, or none if the kind is done",
						got.Kind,
						got.Reason,
					)
				}
				if got.Kind != OutcomeDone && got.RetryAfter <= 0 {
					t.Errorf("Evaluate: got outcome %s without a back-off, want one", got.Kind)
				}
				if missing := tt.answer.Status == 442; missing != (got.Code == MissingParent) {
					t.Errorf("Evaluate: got the code %q, want %q exactly after 442", got.Code, MissingParent)
				}
			})
		}
	}
}

func TestEvaluate_SuccessThatIsNotFromTheControllerIsRetried(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op   Operation
		body string
		want OutcomeKind
	}{
		{Create, ``, OutcomeDone},
		{Create, ` {"port":{"id":"p"}}`, OutcomeDone},
		{Update, `{"port":{}}`, OutcomeDone},
		{Update, " \n", OutcomeDone},
		{Delete, ``, OutcomeDone},
		{Delete, `{}`, OutcomeDone},
		{Create, `<html>sign in</html>`, OutcomeRetry},
		{Create, `{}`, OutcomeRetry},
		{Create, `{"network":{}}`, OutcomeRetry},
		{Update, `{"port":{`, OutcomeRetry},
		{Update, `{"port":{"a":"` + strings.Repeat("x", int(MaxAnswer(entry(Update, "port", `{}`)))-14), OutcomeDone},
		{Delete, `{"a":"` + strings.Repeat("x", int(MaxAnswer(entry(Delete, "port", `{}`)))-6), OutcomeDone},
		{Update, `{"error":{"a":"` + strings.Repeat("x", int(MaxAnswer(entry(Update, "port", `{}`)))-15), OutcomeRetry},
		{Update, `<p>` + strings.Repeat("x", int(MaxAnswer(entry(Update, "port", `{}`)))-3), OutcomeRetry},
		{Update, `null`, OutcomeRetry},
		{Update, `ok`, OutcomeRetry},
		{Delete, `<html>sign in</html>`, OutcomeRetry},
	} {
		for _, code := range []int{200, 201, 204} {
			t.Run(fmt.Sprintf("%s %d %.20q", tt.op, code, tt.body), func(t *testing.T) {
				t.Parallel()
				o := Evaluate(entry(tt.op, "port", `{}`),
					Response{Status: code, Body: []byte(tt.body)}, DefaultMaxFailures)
				if o.Kind != tt.want || o.MaybeApplied != (tt.want == OutcomeRetry) {
					t.Errorf(
						"Evaluate: got outcome %+v, want kind %s, and MaybeApplied only for the kind `again`",
						o,
						tt.want,
					)
				}
			})
		}
	}
}

func TestEvaluate_EntryFailsAfterMaxFailures(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, DefaultMaxFailures, 40} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			e := Entry{Operation: Create}
			for e.Failures < limit-1 {
				o := Evaluate(e, Response{Status: http.StatusBadRequest}, limit)
				if o.Kind != OutcomeRejected || o.State() != Pending || !o.CountsAsFailure() {
					t.Fatalf(
						"evaluate unexpected response number %d of %d: got outcome %+v, want pending and counted as a failure",
						e.Failures+1, limit, o,
					)
				}
				e.Failures++
			}
			for _, last := range []Response{status(400), {Status: 500, AcceptsOthers: true}} {
				if o := Evaluate(e, last, limit); o.Kind != OutcomeFailed || o.State() != Failed ||
					!o.CountsAsFailure() {
					t.Errorf("evaluate response %+v after %d failures: got outcome %+v, want failed",
						last, e.Failures, o)
				}
			}
			if o := Evaluate(e, Response{Status: http.StatusServiceUnavailable}, limit); o.Kind != OutcomeRetry ||
				o.CountsAsFailure() {
				t.Errorf(
					"evaluate a response with status 503: got outcome %+v, want a retry that does not count as a failure",
					o,
				)
			}
		})
	}
	if o := UnsendableOutcome(errors.New("no")); o.State() != Failed {
		t.Errorf("outcome of an entry that cannot be sent: got %+v, want failed", o)
	}
}

// An error of the controller, a time-out or a broken connection counts as a failure of the entry only if the
// controller accepts other writes. If it does not accept other writes, the whole controller is down.
func TestEvaluate_ControllerErrorCountsIfOtherWritesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                 string
		answer               Response
		counts, down, unsure bool
	}{
		{"500 to all", Response{Status: 500}, false, true, true},
		{"500 to this entry", Response{Status: 500, AcceptsOthers: true}, true, false, true},
		{"502 to this entry", Response{Status: 502, AcceptsOthers: true}, true, false, true},
		{"503 to this entry", Response{Status: 503, AcceptsOthers: true}, true, false, false},
		{"599 to this entry", Response{Status: 599, AcceptsOthers: true}, true, false, true},
		{"500 with Retry-After", Response{Status: 500, RetryAfter: time.Second, AcceptsOthers: true}, false, false, true},
		{"503 with Retry-After", Response{Status: 503, RetryAfter: time.Second, AcceptsOthers: true}, false, false, false},
		{"time-out of all", Response{Failure: Timeout}, false, true, true},
		{"time-out of this entry", Response{Failure: Timeout, AcceptsOthers: true}, true, false, true},
		{"reset of all", Response{Failure: ConnectionReset}, false, true, true},
		{"reset of this entry", Response{Failure: ConnectionReset, AcceptsOthers: true}, true, false, true},
		{"unreachable", Response{Failure: Unreachable, AcceptsOthers: true}, false, true, false},
		{"circuit breaker", Response{Failure: CircuitOpen, AcceptsOthers: true}, false, true, false},
		{"429", Response{Status: 429, AcceptsOthers: true}, false, false, false},
		{"442", Response{Status: 442, AcceptsOthers: true}, false, false, false},
	} {
		for _, op := range []Operation{Create, Update, Delete} {
			t.Run(fmt.Sprintf("%s %s", tt.name, op), func(t *testing.T) {
				t.Parallel()
				for attempt := 1; attempt < 100; attempt *= 3 {
					o := Evaluate(Entry{Operation: op, Attempt: attempt}, tt.answer, DefaultMaxFailures)
					if o.CountsAsFailure() != tt.counts || o.ControllerDown != tt.down ||
						o.MaybeApplied != tt.unsure ||
						o.State() != Pending ||
						o.RetryAfter <= 0 {
						t.Errorf(
							"evaluate at attempt %d: got outcome %+v, want pending, counted %t, ControllerDown %t, MaybeApplied %t",
							attempt, o, tt.counts, tt.down, tt.unsure,
						)
					}
				}
			})
		}
	}
}

func TestEvaluate_RespectsRetryAfterUpToALimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ asked, want time.Duration }{{2 * time.Minute, 2 * time.Minute}, {24 * time.Hour, maxRetryAfter}} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(fmt.Sprintf("%d %s", code, tt.asked), func(t *testing.T) {
				t.Parallel()
				if o := Evaluate(Entry{Attempt: 1}, Response{Status: code, RetryAfter: tt.asked}, DefaultMaxFailures); o.RetryAfter != tt.want {
					t.Errorf("evaluate a response with a Retry-After header: got back-off %s, want %s",
						o.RetryAfter, tt.want)
				}
			})
		}
	}
}

func TestBackoff_GrowsIsBoundedAndSpread(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for seq := range int64(100) {
		for attempt := range 2000 {
			p := backoff(Entry{Seq: seq}, firstBackoff, attempt)
			if p < firstBackoff*3/4 || p > maxBackoff {
				t.Fatalf("back-off of entry %d after attempt %d: got %s, want from %s to %s",
					seq, attempt, p, firstBackoff*3/4, maxBackoff)
			}
			if attempt == 7 {
				seen[p] = true
			}
		}
	}
	if len(seen) < 90 {
		t.Errorf("back-off of 100 entries: got only %d different values, want at least 90", len(seen))
	}
	if a, b := backoff(Entry{Seq: 1}, firstBackoff, 1), backoff(Entry{Seq: 1}, firstBackoff, 5); b < 8*a {
		t.Errorf(
			"back-off of an entry: got %s after attempt 1 and %s after attempt 5, want at least eight times as long",
			a,
			b,
		)
	}
}

func TestEvaluate_ReasonIsOnePrintableLine(t *testing.T) {
	t.Parallel()
	body := "bad\x00\n\tthing \xff" + strings.Repeat("x", 5000)
	for _, a := range []Response{{Status: 400, Body: []byte(body)}, {Failure: ConnectionReset, Detail: body}} {
		reason := Evaluate(Entry{}, a, DefaultMaxFailures).Reason
		if len(reason) > 300 || !utf8.ValidString(reason) || strings.ContainsAny(reason, "\x00\n\t") ||
			!strings.Contains(reason, "thing ?xx") {
			t.Errorf(
				"evaluate a response with a long binary text: got the reason %q, want one printable line of at most 300 bytes",
				reason,
			)
		}
	}
}

// The controller answers 400 and not 404 if a pool lacks the member that a delete names.
func TestEvaluate_DeleteOfAnUnknownMemberIsDone(t *testing.T) {
	t.Parallel()
	unknown := Response{Status: 400, Body: []byte("LoadBalancerPoolMember UUID does not exist.")}
	for _, tt := range []struct {
		name   string
		op     Operation
		typ    string
		answer Response
		want   OutcomeKind
	}{
		{"unknown member", Delete, "member", unknown, OutcomeDone},
		{"other refusal", Delete, "member", Response{Status: 400, Body: []byte("Invalid requests")}, OutcomeRejected},
		{"update", Update, "member", unknown, OutcomeRejected},
		{"object in no collection of another object", Delete, "pool", unknown, OutcomeRejected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if o := Evaluate(entry(tt.op, tt.typ, `{"pool_id":"p"}`), tt.answer, DefaultMaxFailures); o.Kind != tt.want {
				t.Errorf("evaluate the answer %d %q to the %s of a %s: got %+v, want %s",
					tt.answer.Status, tt.answer.Body, tt.op, tt.typ, o, tt.want)
			}
		})
	}
}
